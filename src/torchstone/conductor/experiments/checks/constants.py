"""Functions that answer with a constant of the right kind: a check that accepts one says nothing of values.

The decorator is written into a copy of the project, and runs there, in the sandbox.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

from torchstone.conductor.experiments.recording.copies import copy_arguments

CONSTANTS = (0, 1)
"""Zero passes most checks of finiteness and of equality between two calls, one passes those of sign."""


def decorator_of(constant: int) -> str:
    """The source of the decorator, which needs no import in the decorated file."""
    return f"__import__({__name__!r}, fromlist=['answer']).answer_with({constant})"


def answer_with(constant: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Calls of the function have no effect, and answer with this number in the form of the real answer."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            return function

        @functools.wraps(function)
        def answer(*args: Any, **kwargs: Any) -> Any:
            copied = copy_arguments({"args": args, "kwargs": kwargs})
            if copied is None:
                return function(*args, **kwargs)
            return fill(function(*copied["args"], **copied["kwargs"]), constant)

        return answer

    return decorate


def fill(value: Any, constant: int) -> Any:
    """A value of the same form whose numbers are all this one."""
    if isinstance(value, torch.Tensor):
        return torch.full_like(value, constant).requires_grad_(value.requires_grad)
    if isinstance(value, bool | int | float):
        return type(value)(constant)
    if isinstance(value, dict):
        return {key: fill(item, constant) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(fill(item, constant) for item in value))
    if type(value) in (list, tuple):
        return type(value)(fill(item, constant) for item in value)
    return value
