"""A fix: text edits, how safe they are, and how to prove them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from torchstone.core.lines import split_lines
from torchstone.core.text import NOTHING, Message


class Safety(StrEnum):
    """What applying a fix may change."""

    SAFE = "safe"
    """The meaning stays, or only the defect goes."""
    UNSAFE = "unsafe"
    """Right in the usual case; applied on request only."""
    SHOW = "show"
    """A sketch for a person; never applied."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace a span of one file. Lines count from 1, columns from 0, in characters."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    cell: int = 0

    @property
    def start(self) -> tuple[int, int]:
        return (self.line, self.column)

    @property
    def end(self) -> tuple[int, int]:
        return (self.end_line, self.end_column)


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together: all are applied or none."""

    edits: tuple[Edit, ...]
    safety: Safety = Safety.SAFE
    says: Message = Message("", NOTHING)
    proof: str = ""
    """The command that shows that the fix holds."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with the edits made; they must not overlap."""
    lines = split_lines(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(line: int, column: int) -> int:
        return min(starts[min(line - 1, len(starts) - 1)] + column, len(text))

    spans = sorted({(offset(*edit.start), offset(*edit.end), edit.text) for edit in edits})
    out: list[str] = []
    at = 0
    for start, end, replacement in spans:
        if start < at:
            raise ValueError("edits overlap")
        out += (text[at:start], replacement)
        at = end
    out.append(text[at:])
    return "".join(out)


_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


def patched(text: str, change: str) -> str:
    """A text with a change made to it, which is written as a diff without context."""
    lines, out, at = text.splitlines(keepends=True), [], 0
    for row in change.splitlines(keepends=True):
        hunk = _HUNK.match(row)
        if hunk is not None:
            first, count = int(hunk[1]), int(hunk[2] or 1)
            start = first - 1 if count else first
            out += lines[at:start]
            at = start + count
        elif row.startswith("+"):
            out.append(row[1:])
    return "".join((*out, *lines[at:]))
