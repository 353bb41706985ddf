"""Replacing attributes of torch and the standard library in a process that has no other use."""

from __future__ import annotations

from typing import Any

_replaced: list[tuple[Any, str, Any]] = []
_ABSENT = object()


def put(holder: Any, name: str, value: Any) -> None:
    """Put a value in the place of an attribute, for the rest of this process."""
    own = vars(holder).get(name, _ABSENT) if hasattr(holder, "__dict__") else _ABSENT
    _replaced.append((holder, name, own))
    setattr(holder, name, value)


def restore_all() -> None:
    """Take back all that was put: for a copy of the process that has another use."""
    for holder, name, value in reversed(_replaced):
        if value is _ABSENT:
            delattr(holder, name)
        else:
            setattr(holder, name, value)
    _replaced.clear()
