"""A line of the user's code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A file and a line; false where there is none."""

    path: str = ""
    line: int = 0
    scope: str = ""
    """Dotted name of the function or class around it; empty at the top level of a file."""
    module: str = ""
    """Path of the nn.Module that was running, where that is known."""
    phase: str = ""
    """`forward` or `backward`, where that is known."""

    def __bool__(self) -> bool:
        return bool(self.path)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


NOWHERE = Place()
