"""Which line of the project is running now."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the project."""

    path: str
    line: int
    scope: str = ""
    """Dotted name of the function or class around it."""

    def __bool__(self) -> bool:
        return bool(self.path)


NOWHERE = Place("", 0)


class Places:
    """Finds lines of the files below one folder in the running stack."""

    def __init__(self, root: Path) -> None:
        self._root = f"{root.resolve()}/"
        self._known: dict[CodeType, str] = {}

    def path_of(self, code: CodeType) -> str:
        """The path below the project; empty for code of others."""
        path = self._known.get(code)
        if path is None:
            name = code.co_filename
            inside = name.startswith(self._root)
            path = name.removeprefix(self._root) if inside else ""
            self._known[code] = path
        return path

    def of(self, frame: FrameType) -> Place:
        """The line that a frame runs; nowhere for code of others."""
        path = self.path_of(frame.f_code)
        return _place(frame, path) if path else NOWHERE

    def here(self, depth: int = 1) -> Place:
        """The innermost line of the project."""
        frame: FrameType | None = sys._getframe(depth)
        while frame is not None:
            if path := self.path_of(frame.f_code):
                return _place(frame, path)
            frame = frame.f_back
        return NOWHERE

    def stack(self, depth: int = 1) -> tuple[Place, ...]:
        """Every line of the project in the stack, the innermost first."""
        found: list[Place] = []
        frame: FrameType | None = sys._getframe(depth)
        while frame is not None:
            if path := self.path_of(frame.f_code):
                found.append(_place(frame, path))
            frame = frame.f_back
        return tuple(found)


def _place(frame: FrameType, path: str) -> Place:
    scope = frame.f_code.co_qualname.replace("<locals>.", "")
    return Place(path, frame.f_lineno, "" if scope == "<module>" else scope)
