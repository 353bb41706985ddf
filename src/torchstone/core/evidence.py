"""Small tagged facts that stand behind a finding; pictures as data are in `pictures.py`.

Each kind is drawn by one file of its own name in `render/draw/`, for the terminal and for HTML.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torchstone.core.text import Words

State = Literal["good", "bad", "warning", "plain"]
"""How something stands, as its colour says it."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """Lines of source with the columns that matter marked."""

    kind: ClassVar[str] = "snippet"
    path: str
    line: int
    """Number of the first line in `text`."""
    text: str
    mark_line: int = 0
    mark_start: int = 0
    mark_end: int = 0
    caption: Words = ""


@dataclass(frozen=True, slots=True)
class Number:
    """One value with its unit, its spread and how it was obtained."""

    kind: ClassVar[str] = "number"
    name: Words
    value: float
    unit: str
    how: Words
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff."""

    kind: ClassVar[str] = "diff"
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command that was run, or that would show more."""

    kind: ClassVar[str] = "command"
    line: str
    exit_code: int | None = None
    output: str = ""
