"""torch's autograd engine, started so that it computes in the calling thread alone.

The first backward pass of a process starts a thread for every device that torch knows by then.
Copies of a process with such threads refuse autograd, and a thread that runs Python when the
interpreter ends takes the process down (`terminate called without an active exception`). Builds for
CUDA know a device as soon as fake tensors are used, others as soon as the pretend device is
registered.
"""

from __future__ import annotations

import os
from pathlib import Path

_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_THREAD = "pt_autograd"


def start_engine() -> None:
    """Do the first backward pass while no device is known. The devices of the machine are hidden
    for that moment: torch counts them once, and a process that pretends a device uses none of them."""
    asked = {name: os.environ.get(name) for name in _VISIBLE}
    os.environ.update(dict.fromkeys(_VISIBLE, ""))
    import torch

    try:
        torch.ones(1, requires_grad=True).sum().backward()
    finally:
        for name, value in asked.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    torch.autograd.set_multithreading_enabled(False)


def engine_threads() -> int:
    """Threads of the engine that compute on devices."""
    names = []
    for entry in Path("/proc/self/task").glob("*/comm"):
        try:
            names.append(entry.read_text())
        except OSError:  # a thread that has just ended
            continue
    return sum(name.startswith(_THREAD) for name in names)
