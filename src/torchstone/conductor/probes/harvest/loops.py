"""Loops of the project that train or evaluate are left after a few rounds.

What comes after them (evaluation, checkpoints, decoding) would otherwise never be reached in a few
seconds. A loop is left at its head, before its next round, by a jump to the statement after it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from torchstone.observe.where import Where

_ROUNDS = 8
"""Steps or calls of a model in the innermost loop: enough for accumulation over four."""
_OUTER_ROUNDS = 20
"""In the loops around it: two rounds of the innermost, and some."""


@dataclass(frozen=True, slots=True)
class Loop:
    """The lines of a loop."""

    first: int
    body: int
    last: int
    after: int
    """The line of the statement behind it; 0 where there is none in its block."""


class LoopCutter:
    """Counts what happens in each loop and leaves it when that was enough."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._counts: dict[tuple[int, Loop], tuple[FrameType, int]] = {}
        self._wanted: dict[FrameType, Loop] = {}

    def count(self) -> None:
        """Something that a loop repeats has happened: a step, or a call in evaluation."""
        limit = _ROUNDS
        for frame in self._where.own_frames(sys._getframe(2)):
            for loop in reversed(_loops_at(frame)):
                known, count = self._counts.get((id(frame), loop), (frame, 0))
                count = count + 1 if known is frame else 1
                self._counts[id(frame), loop] = (frame, count)
                if count >= limit and loop.after:
                    self._leave(frame, loop)
                limit = _OUTER_ROUNDS

    def _leave(self, frame: FrameType, loop: Loop) -> None:
        self._wanted[frame] = loop  # the outermost is noted last
        frame.f_trace = self._local
        sys.settrace(self._nothing)

    def _nothing(self, *_: Any) -> None:
        """Frames that begin from now on are left alone."""

    def _local(self, frame: FrameType, event: str, _: Any) -> Any:
        loop = self._wanted.get(frame)
        if loop is None or event == "return":
            self._done(frame)
            return None
        if event == "line" and loop.first <= frame.f_lineno < loop.body:
            # from inside a block that cannot be jumped out of the loop goes on
            with contextlib.suppress(ValueError):
                frame.f_lineno = loop.after  # type: ignore[misc]
            self._done(frame)
            return None
        return self._local

    def _done(self, frame: FrameType) -> None:
        loop = self._wanted.pop(frame, None)
        self._counts.pop((id(frame), loop), None) if loop else None
        frame.f_trace = None
        if not self._wanted:
            sys.settrace(None)


def _loops_at(frame: FrameType) -> list[Loop]:
    """The loops around the running line of a function, the outermost first."""
    line, begin = frame.f_lineno, frame.f_code.co_firstlineno
    loops = _loops(frame.f_code.co_filename)
    inner = [item for item in loops if item.first >= begin and item.first <= line <= item.last]
    return inner if frame.f_code.co_name != "<lambda>" else []


@functools.lru_cache(maxsize=256)
def _loops(path: str) -> tuple[Loop, ...]:
    """Every loop of a file, outer ones before inner ones."""
    try:
        tree = ast.parse(Path(path).read_text("utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return ()
    found: list[Loop] = []
    for parent in ast.walk(tree):
        for block in ("body", "orelse", "finalbody"):
            given = getattr(parent, block, None)
            rows: list[ast.stmt] = given if isinstance(given, list) else []
            for place, node in enumerate(rows):
                if isinstance(node, (ast.For, ast.While)) and not node.orelse:
                    after = rows[place + 1].lineno if place + 1 < len(rows) else 0
                    body = max(node.body[0].lineno, node.lineno + 1)
                    found.append(Loop(node.lineno, body, node.end_lineno or node.lineno, after))
    return tuple(sorted(found, key=lambda item: (item.first, -item.last)))
