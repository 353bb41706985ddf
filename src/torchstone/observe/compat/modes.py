"""Modes that see every call, and the stacks that they stand on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils._python_dispatch as _dispatching
from torch._C import DisableTorchFunction, DisableTorchFunctionSubclass
from torch.overrides import _get_current_function_mode_stack as function_modes
from torch.overrides import _pop_mode as pop_function_mode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes as disable_modes
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack as dispatch_modes
from torch.utils._python_dispatch import _pop_mode as pop_dispatch_mode

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchDispatchMode",
    "disable_modes",
    "dispatch_flags",
    "dispatch_modes",
    "fake_mode_on_top",
    "function_modes",
    "pop_dispatch_mode",
    "pop_function_mode",
    "set_dispatch_flags",
    "set_grad_enabled",
]

set_grad_enabled: Callable[[bool], None] = torch._C._set_grad_enabled
"""The switch itself, for code that may not call through a context manager."""
_FAKE = torch._C._TorchDispatchModeKey.FAKE


def fake_mode_on_top() -> Any:
    """The fake mode that is active now, or None."""
    return torch._C._get_dispatch_mode(_FAKE)


def dispatch_flags() -> dict[str, Any]:
    """What torch notes beside the stack of dispatch modes."""
    return {key: value for key, value in vars(_dispatching).items() if key.startswith("_is_in_")}


def set_dispatch_flags(flags: dict[str, Any]) -> None:
    """Put notes back that `dispatch_flags` gave."""
    vars(_dispatching).update(flags)
