"""Sees every call of a function of the user's own: what it was given and what it gave back."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from types import CodeType, FrameType
from typing import Any

from torchstone.core.place import Place
from torchstone.observe.where import OWN, PROGRAM

_SKIPPED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""A generator comes back at every `yield`: its return event is no return."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One call that has ended, by a return or by an exception."""

    code: CodeType
    frame: FrameType
    arguments: dict[str, Any]
    result: Any
    caller: Place

    def returned_at(self) -> Place:
        """The line that returned."""
        return PROGRAM.line_of(self.frame)

    def defined_at(self) -> Place:
        """The first line of the function."""
        code = self.code
        return PROGRAM.place(code.co_filename, code.co_firstlineno, code.co_qualname)


Observer = Callable[[FunctionCall], None]


class FunctionCalls:
    """Tells its observers of every call, through the interpreter's profile hook."""

    def __init__(self) -> None:
        self.observers: list[Observer] = []
        self._open: dict[FrameType, dict[str, Any]] = {}
        self._started = False
        self._inside = False

    def start(self) -> None:
        """From now on calls are seen, in this thread."""
        if not self._started:
            self._started = True
            sys.setprofile(self._event)

    def start_with(self, package: str) -> None:
        """Start as soon as the program imports a package, and not before: it costs time."""
        if package in sys.modules:
            self.start()
        else:
            sys.meta_path.insert(0, _ImportWatch(package, self.start))

    def _event(self, frame: FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if PROGRAM.kind_of(code.co_filename) != OWN or self._inside:
            return
        if code.co_name[0] == "<" or code.co_flags & _SKIPPED:
            return
        if event == "call":
            count = code.co_argcount + code.co_kwonlyargcount
            self._open[frame] = {
                name: frame.f_locals[name]
                for name in code.co_varnames[:count]
                if name in frame.f_locals
            }
        elif event == "return" and (arguments := self._open.pop(frame, None)) is not None:
            self._inside = True
            try:
                call = FunctionCall(code, frame, arguments, value, PROGRAM.around(frame.f_back))
                for observe in self.observers:
                    observe(call)
            finally:
                self._inside = False


class _ImportWatch(MetaPathFinder):
    """Finds nothing; tells that a package is being imported."""

    def __init__(self, package: str, tell: Callable[[], None]) -> None:
        self._package = package
        self._tell = tell

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        del path, target
        if fullname == self._package:
            self._tell()
