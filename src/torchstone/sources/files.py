"""The files of one check: their names, what they hold, which of them call a name."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from torchstone.sources.discover import File

WORDS = bytes(c if chr(c).isalnum() or c in b"_" or c > 127 else 32 for c in range(256))
"""Blanks everything but words."""
_CALLS = bytes(c if WORDS[c] != 32 or c == ord("(") else 32 for c in range(256))
"""Blanks everything but words and opening brackets."""


def called_in(data: bytes) -> set[bytes]:
    """The words of a file that a bracket follows; four times as fast as an expression."""
    found: set[bytes] = set()
    for chunk in set(data.translate(_CALLS).split()):
        if b"(" in chunk:
            found.update(chunk.split(b"(")[:-1])
    found.discard(b"")
    return found


class Files:
    """The files of one check as they lie in their folders; none is parsed."""

    def __init__(self, files: Iterable[File] = ()) -> None:
        self._files = {_posix(file): file for file in files}
        self._by_name = {file.name: file for file in self._files.values()}
        parts = [path.split("/") for path in self._files]
        self._tops = {row[-1].partition(".")[0] for row in parts}
        self._tops |= {part for row in parts for part in row[-4:-1] if part}
        self._found: dict[tuple[str, str], str | None] = {}
        self._words: dict[str, bool] = {}
        self._called: dict[bytes, list[str]] | None = None
        self._packages: dict[str, bool] = {}
        self._missing: dict[str, set[str]] = defaultdict(set)
        self._importers: set[str] = set()
        self._paths = {file.name: path for path, file in self._files.items()}
        self.summaries: dict[Any, Any] = {}
        """What is known of functions, by whoever works it out; kept for the whole run."""
        self.torch: tuple[int, int] | None = None
        """The oldest torch the project says it runs with."""
        self.torch_open = False
        """Whether the project admits everything from that torch on."""
        self.strict = False
        """Whether what is thought harmless is to be reported too."""
        self.doubtful = True
        """Whether what is merely possible, or thought harmless, is wanted, too."""
        self.torch_known = True
        """Whether the project, or whoever asked, says which torch it is."""
        self.begin_file()

    def begin_file(self) -> None:
        """Start to note what the next file needs of the others."""
        self.shared = False
        """Set when another file had a say."""

    # a file keeps its answers while others ask about it: what they rest on is noted by file

    def missing(self, name: str) -> frozenset[str]:
        """Top-level names that a file looked for and that are not part of the project."""
        return frozenset(self._missing.get(name, ()))

    def is_shared(self, name: str) -> bool:
        """Whether another file has a say in what the file being read, of this name, gives."""
        return self.shared or name in self._importers

    @property
    def tops(self) -> set[str]:
        """The names under which something of the project can be imported."""
        return self._tops

    def _module_name(self, path: str) -> tuple[str, str]:
        """(module, package) of a file, by the `__init__.py` files above it."""
        pure = PurePosixPath(path)
        parts = [] if pure.stem == "__init__" else [pure.stem]
        folder = pure.parent
        while folder.parent != folder and self._is_package(str(folder)):
            parts.insert(0, folder.name)
            folder = folder.parent
        package = parts if pure.stem == "__init__" else parts[:-1]
        return ".".join(parts), ".".join(package)

    def _is_package(self, folder: str) -> bool:
        if folder not in self._packages:
            self._packages[folder] = os.path.exists(f"{folder}/__init__.py") or (
                f"{folder}/__init__.py" in self._files
            )
        return self._packages[folder]

    def mentions(self, word: str) -> bool:
        """Whether any file of the project holds a word, in code or not."""
        self.shared = True
        if word not in self._words:
            needle = word.encode("utf-8", "surrogateescape")
            found = (file.read() for file in self._files.values())
            self._words[word] = any(isinstance(data, bytes) and needle in data for data in found)
        return self._words[word]

    def contents(self) -> Iterator[bytes]:
        """What the files of the project hold; those that cannot be read are left out."""
        for file in self._files.values():
            data = file.read()
            if isinstance(data, bytes):
                yield data

    @property
    def paths(self) -> Iterable[str]:
        """The paths of all files."""
        self.shared = True
        return self._files.keys()

    def text_of(self, path: str) -> str:
        """What a file holds; "" for one that cannot be read."""
        data = self._files[path].read()
        return data.decode("utf-8", "replace") if isinstance(data, bytes) else ""

    def files_that_call(self, name: str) -> list[str]:
        """The paths of the files in which a name is followed by a bracket."""
        self.shared = True
        if self._called is None:
            self._called = defaultdict(list)
            for path, file in self._files.items():
                if isinstance(data := file.read(), bytes):
                    for word in called_in(data):
                        self._called[word].append(path)
        return self._called.get(name.encode("utf-8", "surrogateescape"), [])

    def path_named(self, name: str) -> str:
        """The path under which the project knows the file of this name."""
        return self._paths[name]

    def files_that_name(self, paths: list[str], word: str) -> list[str]:
        """Those of the files in which a word stands, in code or not."""
        needle = word.encode("utf-8", "surrogateescape")
        return [
            path
            for path in paths
            if isinstance(data := self._files[path].read(), bytes) and needle in data
        ]

    def find(self, module: str, importer: str) -> str | None:
        """The path of a module of the project as seen from one of its files."""
        top = module.partition(".")[0]
        if top not in self._tops:
            self._missing[importer].add(top)
            return None
        self._share(importer)
        key = (module, os.path.dirname(importer))
        if key not in self._found:
            self._found[key] = self._search(module, importer)
        return self._found[key]

    def _share(self, importer: str) -> None:
        self.shared = True
        self._importers.add(importer)

    def _search(self, module: str, importer: str) -> str | None:
        file = self._by_name.get(importer)
        if file is None:
            return None
        inner = module.replace(".", "/")
        folder = PurePosixPath(self._paths[file.name]).parent
        for base in (folder, *folder.parents):
            for shape in (
                f"{inner}.py",
                f"{inner}/__init__.py",
                f"src/{inner}.py",
                f"src/{inner}/__init__.py",
            ):
                path = f"{base}/{shape}"
                if path in self._files:
                    return path
        return None


def _posix(file: File) -> str:
    return file.place.replace(os.sep, "/")
