"""torch's autograd engine, started so that the process can be copied afterwards.

The first backward pass of a process starts a thread for every device that torch knows by then; a
process with such threads refuses autograd in its copies. Builds for CUDA know a device as soon as
fake tensors are used, others as soon as the pretend device is registered.
"""

from __future__ import annotations

import os
from pathlib import Path

from torchstone.dryrun.harness import HarnessError

_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_THREAD = "pt_autograd"


def start_engine() -> None:
    """Do the first backward pass while no device is known. The devices of the machine are hidden
    for that moment: torch counts them once, and a dry run uses none of them."""
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


def check_can_copy() -> None:
    """Raise where copies of this process could not compute gradients."""
    if threads := engine_threads():
        raise HarnessError(
            f"torch has started {threads} threads for devices: copies of this process have no autograd"
        )


def engine_threads() -> int:
    """Threads of the engine that compute on devices."""
    names = []
    for entry in Path("/proc/self/task").glob("*/comm"):
        try:
            names.append(entry.read_text())
        except OSError:  # a thread that has just ended
            continue
    return sum(name.startswith(_THREAD) for name in names)
