"""Replacing attributes of torch and the standard library in a process that has no other use."""

from __future__ import annotations

from typing import Any

from torchstone.observe.undo import Undo

_REPLACED = Undo()


def put(holder: Any, name: str, value: Any) -> None:
    """Put a value in the place of an attribute, for the rest of this process."""
    _REPLACED.set(holder, name, value)


def restore_all() -> None:
    """Take back all that was put: for a copy of the process that has another use."""
    _REPLACED.close()
