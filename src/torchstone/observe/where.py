"""The line of the user's code that is running now.

Code is told apart by the file it was compiled from, never by its code object: two code objects of
equal text are equal, whatever files they come from.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from types import FrameType, TracebackType

from torchstone.core.place import NOWHERE, Place

_OURS = f"{Path(__file__).parents[1]}{os.sep}"
_PACKAGES = ("/site-packages/", "/dist-packages/", "\\site-packages\\")
"""Folders of installed packages wherever they are: the user's own, and those on PYTHONPATH."""
_TYPED_IN = ("<stdin>", "<console>", "<ipython-input", "<doctest ", "<cell")
"""Names for what a person typed. Other names in angle brackets are for generated code: methods of
dataclasses and named tuples, graphs of torch.fx, `exec` of a string. The line that made or called
it can be opened, its own cannot."""
_COMMAND = "<string>"
"""The text of `python -c` has the name of generated code, too."""
_CALLED_FOR_THE_USER = ("/torch/_tensor.py", "/torch/overrides.py", "/torch/functional.py")
"""torch's Python code that only hands on what the user asks."""
_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")


class Kind(IntEnum):
    """Whose code it is."""

    HIDDEN = 0
    """torch, Torchstone, generated code."""
    STANDARD = 1
    """Python's own library."""
    LIBRARY = 2
    """An installed package."""
    OWN = 3
    """The user's."""


HIDDEN, STANDARD, LIBRARY, OWN = Kind


class Where:
    """Finds lines of the user's code in the running stack.

    With a root, only files below it are the user's own. The same line is always the same object,
    so that asking at every operator costs the walk over the frames and one look-up.
    """

    def __init__(self, root: Path | str = "", start: Path | str = "") -> None:
        self._root = f"{Path(root).resolve()}{os.sep}" if root else ""
        self._start = str(start)
        self._kinds: dict[str, Kind] = {}
        self._names: dict[str, str] = {}
        self._places: dict[tuple[str, int, str], Place] = {}

    def start_in(self, folder: Path | str) -> None:
        """Paths are shown relative to this folder, wherever the program goes afterwards."""
        self._start = str(folder)
        self._names.clear()
        self._places.clear()

    # -- whose code

    def kind_of(self, file: str) -> Kind:
        """Whose code was compiled from this file."""
        kind = self._kinds.get(file)
        if kind is None:
            kind = self._kinds[file] = self._find_kind(file)
        return kind

    def is_own(self, file: str) -> bool:
        """Whether the user wrote this file."""
        return self.kind_of(file) is OWN

    def _find_kind(self, file: str) -> Kind:
        kind = kind_of_file(file)
        if kind is OWN and self._root and not file.startswith(self._root):
            return LIBRARY
        return kind

    # -- which line

    def here(self, depth: int = 1) -> Place:
        """The innermost line of the user's own code; of a library where there is none."""
        return self.around(sys._getframe(depth))

    def around(self, frame: FrameType | None) -> Place:
        """The same, from a frame outwards."""
        kinds, library, first = self._kinds, None, frame
        while frame is not None:
            file = frame.f_code.co_filename
            kind = kinds.get(file)
            if kind is None:
                kind = self.kind_of(file)
            if kind is OWN:
                return self.line_of(frame)
            if library is None and kind is not HIDDEN:
                library = frame
            frame = frame.f_back
        return self._command_line(first) if library is None else self.line_of(library)

    def own(self, depth: int = 1) -> Place:
        """The innermost line of the user's own code, or nowhere."""
        kinds = self._kinds
        frame: FrameType | None = sys._getframe(depth)
        while frame is not None:
            file = frame.f_code.co_filename
            kind = kinds.get(file)
            if kind is None:
                kind = self.kind_of(file)
            if kind is OWN:
                return self.line_of(frame)
            frame = frame.f_back
        return self._command_line(sys._getframe(depth))

    def nearest(self, depth: int = 1) -> Place:
        """The innermost line of the user's code or of an installed package."""
        frame: FrameType | None = sys._getframe(depth)
        while frame is not None:
            if self.kind_of(frame.f_code.co_filename) >= LIBRARY:
                return self.line_of(frame)
            frame = frame.f_back
        return NOWHERE

    def library(self, depth: int = 1) -> Place:
        """The innermost line of a library that stands between the user's code and torch."""
        frame: FrameType | None = sys._getframe(depth)
        while frame is not None:
            kind = self.kind_of(frame.f_code.co_filename)
            if kind is OWN:
                return NOWHERE
            if kind is not HIDDEN:
                return self.line_of(frame)
            frame = frame.f_back
        return NOWHERE

    def _command_line(self, frame: FrameType | None) -> Place:
        """The line of `python -c` that runs, where that is the program: it has no file."""
        if self._root or hasattr(sys.modules.get("__main__"), "__file__"):
            return NOWHERE
        while frame is not None:
            is_main = frame.f_globals.get("__name__") == "__main__"
            if is_main and frame.f_code.co_filename == _COMMAND:
                return self.line_of(frame)
            frame = frame.f_back
        return NOWHERE

    def is_asked_by_torch(self, depth: int = 1) -> bool:
        """Whether torch's own Python code asks, as its checks of arguments do, and not the user's."""
        frame: FrameType | None = sys._getframe(depth)
        while frame is not None:
            file = frame.f_code.co_filename
            if self.kind_of(file) is not HIDDEN:
                return False
            if file.startswith(_torch_folder()) and not file.endswith(_CALLED_FOR_THE_USER):
                return "/torch/utils/_" not in file
            frame = frame.f_back
        return False

    def stack(self, depth: int = 1) -> tuple[Place, ...]:
        """Every line of the user's own code in the stack, the innermost first."""
        return tuple(map(self.line_of, self.own_frames(sys._getframe(depth))))

    def own_frames(self, frame: FrameType | None) -> Iterator[FrameType]:
        """The frames of the user's own code, from a frame outwards."""
        while frame is not None:
            if self.is_own(frame.f_code.co_filename):
                yield frame
            frame = frame.f_back

    def raised(self, trace: TracebackType | None, least: Kind = OWN) -> list[Place]:
        """The lines that an error went through, the innermost last: the user's own, or down to
        another kind of code."""
        return [
            self.line_of(frame, line)
            for frame, line in traceback.walk_tb(trace)
            if self.kind_of(frame.f_code.co_filename) >= least
        ]

    def last_raised(self, error: BaseException, least: Kind = OWN) -> Place:
        """The innermost line of the user's own code that an error went through."""
        return next(reversed(self.raised(error.__traceback__, least)), NOWHERE)

    def line_of(self, frame: FrameType, line: int | None = None) -> Place:
        """The line that a frame runs, or another one of its function."""
        code = frame.f_code
        return self.place(code.co_filename, line or frame.f_lineno or 0, code.co_qualname)

    def place(self, file: str, line: int, qualified_name: str = "") -> Place:
        """A line by the file and the name that its code object gives."""
        key = (file, line, qualified_name)
        found = self._places.get(key)
        if found is None:
            found = Place(self.shown(file), line, scope_of(qualified_name))
            self._places[key] = found
        return found

    def shown(self, file: str) -> str:
        """A path relative to the root, the first working folder, or the folder of packages."""
        name = self._names.get(file)
        if name is None:
            bases = (self._root, self._start or _working_folder(), *_installed())
            name = next((short for base in bases if (short := _below(file, base))), file)
            self._names[file] = name
        return name

    def file_of(self, place: Place) -> str:
        """The file that a place was compiled from: its path as Python has it."""
        return next((file for file, name in self._names.items() if name == place.path), place.path)


PROGRAM = Where()
"""The whole program, whatever folder its files stand in."""


def is_ours(file: str) -> bool:
    """Whether it is code of this package."""
    return file.startswith(_OURS)


def is_of_package(file: str) -> bool:
    """Whether it is in a folder of installed packages, torch's included."""
    return any(part in file for part in _PACKAGES) or file.startswith(_installed())


def kind_of_file(file: str) -> Kind:
    """Whose code a file is, by its name alone."""
    if file.startswith("<"):
        return OWN if file.startswith(_TYPED_IN) else HIDDEN
    if file.startswith((_OURS, _torch_folder())):
        return HIDDEN
    if is_of_package(file):
        return LIBRARY
    return STANDARD if file.startswith(_standard()) else OWN


def scope_of(qualified_name: str) -> str:
    """The function or class that a qualified name stands for; a comprehension is part of its
    function."""
    parts = qualified_name.replace("<locals>.", "").split(".")
    while parts and parts[-1] in _COMPREHENSIONS:
        parts.pop()
    return "" if parts == ["<module>"] else ".".join(parts)


def _working_folder() -> str:
    with contextlib.suppress(OSError):  # the program may have deleted it
        return os.getcwd()
    return ""


def _below(file: str, base: str) -> str:
    folder = base if base.endswith(os.sep) else f"{base}{os.sep}"
    return file.removeprefix(folder) if base and file.startswith(folder) else ""


@functools.cache
def _torch_folder() -> str:
    spec = importlib.util.find_spec("torch")  # finds it without loading it
    return f"{Path(spec.origin).parent}{os.sep}" if spec and spec.origin else _OURS


@functools.cache
def _installed() -> tuple[str, ...]:
    return _folders("purelib", "platlib")


@functools.cache
def _standard() -> tuple[str, ...]:
    return _folders("stdlib", "platstdlib")


def _folders(*names: str) -> tuple[str, ...]:
    found = {path for name in names if (path := sysconfig.get_path(name))}
    return tuple(f"{path.rstrip(os.sep)}{os.sep}" for path in sorted(found))
