"""Counts with their nouns."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 line`, `2 lines`, `2 processes`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'x', 'ch')) else 's'}"
