"""A device of our own that stands for an accelerator: torch's private-use backend, from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchstone.observe.compat.versions import TorchTooOldError

_set_up: Callable[..., None] | None
try:
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend as _set_up
except ImportError:  # torch 2.9 and older have no device guard for Python
    _set_up = None

native: Any = torch._C
"""What is below all of torch."""
HAS_PYTHON_BACKEND = _set_up is not None
FAKE_DEVICE = "pretend" if HAS_PYTHON_BACKEND else "lazy"
"""Where fake tensors "on cuda" live. Autograd needs a guard for their device: the lazy backend of a
plain build of torch has one, its backward runs in the calling thread, and no training program
uses it."""


def register_fake_device() -> None:
    """Once per process, after the autograd engine was started."""
    if _set_up is not None:
        _set_up(FAKE_DEVICE)


def register_python_backend(name: str, **parts: Any) -> None:
    """A backend whose operators are written in Python."""
    if _set_up is None:
        raise TorchTooOldError("a backend that is written in Python", "2.10")
    _set_up(name, **parts)
