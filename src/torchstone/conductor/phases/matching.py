"""Which finding after a change is which finding before it: by rule, place and symptom.

A fingerprint holds the text of the line, which the change itself may edit; lines move. So a place
is followed through the change first.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from torchstone.conductor.changes.patches import FileChange
from torchstone.core.finding import Finding
from torchstone.core.lines import split_lines

_NEAR = 2
"""Lines between two reports of one fault: an edit of the line moves it that far."""


class Moves:
    """Where the lines of a project went when changes were made."""

    def __init__(self, changes: Sequence[FileChange] = ()) -> None:
        self._blocks = {
            change.path: difflib.SequenceMatcher(
                None, split_lines(change.before), split_lines(change.after), autojunk=False
            ).get_opcodes()
            for change in changes
        }

    def line_after(self, path: str, line: int) -> int:
        """The line that stands for this one now."""
        for _, start, end, new_start, new_end in self._blocks.get(path, ()):
            if start < line <= end:
                return min(new_start + line - start, max(new_end, new_start + 1))
        return line

    def line_before(self, path: str, line: int) -> int:
        """The line that stood for this one before the changes."""
        for _, start, end, new_start, new_end in self._blocks.get(path, ()):
            if new_start < line <= new_end:
                return max(min(start + line - new_start, end), 1)
        return line

    def find(self, item: Finding, among: Iterable[Finding]) -> Finding | None:
        """The same fault among findings after the changes."""
        line = self.line_after(item.path, item.line)
        for other in among:
            if other.fingerprint == item.fingerprint:
                return other
            if (other.rule, other.path) == (item.rule, item.path) and abs(
                other.line - line
            ) <= _NEAR:
                return other
        return None
