"""What the program looked for and did not find: paths of files and folders, and patterns of names.

Copies of the process write to the same file: a program may look for its data in a pool of workers.
"""

from __future__ import annotations

import builtins
import functools
import glob
import io
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from torchstone.core.place import NOWHERE, Place
from torchstone.observe.where import LIBRARY, OWN, PROGRAM, Where
from torchstone.starting.files.readers import READERS, package_of

_ELSEWHERE = tuple(
    {
        sys.prefix,
        sys.base_prefix,
        "/usr",
        "/lib",
        "/etc",
        "/proc",
        "/sys",
        "/dev",
        os.path.expanduser("~/."),
    }
)
"""Where no data of a program are looked for."""
_MOST = 20
_PACKED = (".gz", ".bz2", ".xz", ".lzma")
"""numpy looks for these beside every text."""
_FRAMES = 16
_real_open, _real_os_open = open, os.open


class Lookups:
    """The paths, the latest last."""

    def __init__(self, file: str, where: Where = PROGRAM) -> None:
        self._file, self._where = file, where

    def note(self, path: str) -> None:
        is_data = not path.startswith(_ELSEWHERE) and "-packages/" not in path
        is_data = is_data and not path.endswith(_PACKED) and "/.git/" not in path
        place = self._asking_line() if is_data else None
        if place is not None:
            line = f"{path}\0{place.path}\0{place.line}".replace("\n", " ")
            handle = _real_os_open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(handle, line.encode("utf-8", "surrogateescape") + b"\n")
            finally:
                os.close(handle)

    def paths(self) -> tuple[str, ...]:
        return tuple(self.places())

    def looked_for(self, path: str) -> Place:
        """The line of the program that looked for a path in vain."""
        return self.places().get(path, NOWHERE)

    def places(self) -> dict[str, Place]:
        """The paths, each with the line of the program that looked for it last."""
        try:
            with _real_open(self._file, encoding="utf-8", errors="surrogateescape") as file:
                lines = file.read().splitlines()
        except OSError:
            return {}
        latest: dict[str, Place] = {}
        for line in reversed(lines):
            path, source, number = (line.split("\0") + ["", "0"])[:3]
            if len(latest) < _MOST:
                latest.setdefault(path, Place(source, int(number)))
        return dict(reversed(latest.items()))

    def _asking_line(self) -> Place | None:
        """The line of the program that looks for something, by itself or through a package that reads data."""
        frame: FrameType | None = sys._getframe(2)
        for _ in range(_FRAMES):
            if frame is None:
                return None
            name = frame.f_code.co_filename
            if name.startswith("<frozen importlib"):
                return None
            kind = self._where.kind_of(name)
            if kind is OWN:
                return Place(name, frame.f_lineno)
            if kind is LIBRARY and package_of(name) not in READERS:
                return None
            frame = frame.f_back
        return None


Put = Callable[[Any, str, Any], None]


def note_patterns(note: Callable[[str], None], put: Put = setattr) -> None:
    """Patterns of names for which there was no file."""
    find, walk = glob.glob, pathlib.Path.glob

    def find_noting(pathname: Any, *args: Any, **kwargs: Any) -> Any:
        found = find(pathname, *args, **kwargs)
        if not found:
            note(os.path.join(str(kwargs.get("root_dir") or ""), str(pathname)))
        return found

    def walk_noting(self: Any, pattern: str, **kwargs: Any) -> Iterator[Any]:
        found = list(walk(self, pattern, **kwargs))
        if not found:
            note(os.path.join(str(self), str(pattern)))
        yield from found

    def walk_below(self: Any, pattern: str, **kwargs: Any) -> Iterator[Any]:
        return walk_noting(self, os.path.join("**", pattern), **kwargs)

    put(glob, "glob", find_noting)
    put(pathlib.Path, "glob", walk_noting)
    put(pathlib.Path, "rglob", walk_below)


def watch_lookups(where: Where) -> Lookups:
    """Note what a program that runs on real files looks for in vain, from now on and for good."""
    handle, file = tempfile.mkstemp(prefix="lookups-")
    os.close(handle)
    lookups = Lookups(file, where)

    def noting(real: Any) -> Any:
        @functools.wraps(real)
        def look(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
            try:
                found = real(path, *args, **kwargs)
            except (FileNotFoundError, NotADirectoryError):
                if isinstance(path, (str, os.PathLike)):
                    lookups.note(os.path.abspath(path))
                raise
            if isinstance(found, list) and all(name.startswith(".") for name in found):
                lookups.note(os.path.abspath(path))  # a folder that holds nothing
            return found

        return look

    for name in ("stat", "lstat", "listdir", "scandir"):
        setattr(os, name, noting(getattr(os, name)))
    builtins.open = io.open = noting(_real_open)
    note_patterns(lambda path: lookups.note(os.path.abspath(path)))
    return lookups
