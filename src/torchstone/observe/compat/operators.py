"""Operators as objects: what they are, and where torch implements them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload

__all__ = [
    "COMPOSITE_EXPLICIT_AUTOGRAD",
    "HigherOrderOperator",
    "OpOverload",
    "function_of_torch",
    "has_kernel",
    "is_tensor_class",
]

COMPOSITE_EXPLICIT_AUTOGRAD = torch._C.DispatchKey.CompositeExplicitAutograd
has_kernel: Callable[[str, str], bool] = torch._C._dispatch_has_kernel_for_dispatch_key
"""Does an operator (by its full name) have a kernel for a dispatch key?"""


def function_of_torch(name: str) -> Callable[..., Any]:
    """A function such as `lstm` as torch's own modules call it."""
    found: Callable[..., Any] = getattr(torch._C._VariableFunctions, name)
    return found


def is_tensor_class(owner: type) -> bool:
    """Is it the class of tensors, or what that is built on?"""
    return issubclass(owner, torch._C.TensorBase)
