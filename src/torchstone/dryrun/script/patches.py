"""Replacing attributes of torch and the standard library in a process that has no other use."""

from __future__ import annotations

from typing import Any


def put(holder: Any, name: str, value: Any) -> None:
    """Put a value in the place of an attribute, for the rest of this process."""
    setattr(holder, name, value)
