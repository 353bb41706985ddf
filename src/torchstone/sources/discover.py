"""Which files are looked at: what is named, and in folders what git would not ignore."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torchstone.core.errors import InputError, UsageError
from torchstone.core.files import read_regular
from torchstone.core.gap import Gap
from torchstone.core.text import Text
from torchstone.sources.source import gap, read_bytes

_IGNORE_BYTES = 1024 * 1024
_MOST_STARS = 8
_HELD_BYTES = 32 * 1024 * 1024  # the sources of a project of 800,000 lines
SUFFIXES = (".py", ".pyi", ".ipynb")
SKIPPED = frozenset(
    (".git", ".hg", ".svn", ".venv", "venv", "__pycache__", "node_modules", ".ipynb_checkpoints")
    + (".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".torchstone", ".eggs")
)


@dataclass(frozen=True, slots=True)
class File:
    """A file to look at and the name that reports use for it."""

    path: Path
    name: str
    data: bytes | None = None
    """What it holds; None for files that are read when they are needed."""
    real: str = ""
    """The path without links where the walk over a folder knows it, else empty."""

    @property
    def place(self) -> str:
        """The path without links: what tells one file from another."""
        return self.real or os.path.realpath(self.path)

    def read(self) -> bytes | Gap:
        """The bytes, or why they cannot be had."""
        return read_bytes(self.path, self.name) if self.data is None else self.data


def with_contents(files: Iterable[File]) -> list[File]:
    """The files with what they hold, up to a limit: several passes need it."""
    found, left = [], _HELD_BYTES
    for file in files:
        data = file.read() if file.data is None and left > 0 else None
        if isinstance(data, bytes):
            left -= len(data)
            file = File(file.path, file.name, data, file.real)
        found.append(file)
    return found


def discover(paths: Iterable[str], exclude: Iterable[str] = ()) -> tuple[list[File], list[Gap]]:
    """The files below the paths, each once, in order of name; unreadable folders are gaps."""
    files: dict[str, File] = {}
    gaps: list[Gap] = []
    patterns = tuple(exclude)
    try:
        excluded = _spec(patterns) if patterns else None
    except (ValueError, re.error) as error:
        raise UsageError(
            "--exclude",
            str(error),
            Text("patterns as in .gitignore", ".gitignore 形式的模式"),
            Text("correct the pattern", "请修正该模式"),
        ) from None
    for given in paths:
        path = Path(given)
        if not given:
            raise _missing(given)
        if path.is_dir():
            for found in _walk(path, gaps, excluded):
                files.setdefault(found.place, found)
        elif path.exists():
            files.setdefault(os.path.realpath(path), File(path, _name(path)))
        else:
            raise _missing(given)
    return sorted(files.values(), key=lambda file: file.name), gaps


def _missing(given: str) -> InputError:
    return InputError(
        "check",
        f"path {given!r}",
        Text("a file or folder that exists", "存在的文件或文件夹"),
        Text("check the spelling, or use `-` for standard input", "请检查拼写；标准输入请用 `-`"),
    )


def _name(path: Path) -> str:
    return path.as_posix()  # `link/..` is another folder than the one that holds the link


def _spec(patterns: Iterable[str]) -> Any:
    # loaded only when there is something to match: most one-file calls need none of it
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)


class _Ignore(NamedTuple):
    """The patterns of one .gitignore and the folder they count from."""

    base: str
    patterns: tuple[tuple[str, str], ...]
    """Each with a part of it that stands in every path it matches; "" when there is none."""


@functools.lru_cache(maxsize=256)  # the paths of a project need few different sets of patterns
def _spec_of(patterns: tuple[str, ...]) -> Any:
    return _spec(patterns)


def _read_ignore(folder: str) -> _Ignore | None:
    try:
        text = read_regular(os.path.join(folder, ".gitignore"), _IGNORE_BYTES)
    except OSError:
        return None
    lines = _sound(text.decode("utf-8", "replace").splitlines())
    return _Ignore(folder, tuple((_literal(line), line) for line in lines if line.strip()))


def _literal(pattern: str) -> str:
    """The longest part of a pattern that a path must hold as it is."""
    if "\\" in pattern:
        return ""  # escapes are left to those who read the pattern in full
    plain = pattern.partition("[")[0]  # where a class ends is for them to say, too
    return max(re.split(r"[*?!/\s]", plain), key=len)


def _sound(lines: list[str]) -> list[str]:
    """The lines that git would use; like git, the rest is passed over in silence."""
    sound: list[str] = []
    for line in lines:
        if line.count("*") > _MOST_STARS:
            continue  # such a pattern can take a regular expression for ever
        try:
            _spec([line])
        except (ValueError, re.error):
            continue
        sound.append(line)
    return sound


def _ignores_above(folder: str) -> tuple[_Ignore, ...]:
    """The .gitignore files between the root of the work tree and the folder, outermost first."""
    chain: list[str] = []
    at = os.path.realpath(folder)
    while not os.path.isdir(os.path.join(at, ".git")):
        parent = os.path.dirname(at)
        if parent == at:
            return ()
        chain.append(parent)
        at = parent
    found = (_read_ignore(above) for above in reversed(chain))
    return tuple(ignore for ignore in found if ignore)


def _ignored(ignores: tuple[_Ignore, ...], path: str, folder: bool) -> bool:
    """The innermost file that has an opinion decides, as in git."""
    for ignore in reversed(ignores):
        relative = path[len(ignore.base) :].replace(os.sep, "/").lstrip("/")
        # no path holds the fixed part of more than a few patterns: the others need not be tried
        near = tuple(line for literal, line in ignore.patterns if literal in relative)
        if near:
            verdict = _spec_of(near).check_file(relative + "/" if folder else relative).include
            if verdict is not None:
                return bool(verdict)
    return False


def _walk(top: Path, gaps: list[Gap], excluded: Any) -> Iterator[File]:
    seen: set[tuple[int, int]] = set()
    root = os.path.realpath(top)
    above = _ignores_above(root)
    if _ignored(above, root, folder=True):
        above = ()  # whoever names an ignored folder wants to see it
    stack: list[tuple[str, str, tuple[_Ignore, ...]]] = [(root, _name(top), above)]
    linked: set[str] = set()  # folders that a link leads to, and all below
    while stack:
        folder, name, ignores = stack.pop()
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in seen:
                continue  # a link back to a folder above
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            why = error.strerror or type(error).__name__
            gaps.append(
                gap(
                    name,
                    "source.unreadable",
                    f"cannot be read: {why}",
                    f"无法读取：{why}",
                    f"ls -ld {name}",
                )
            )
            continue
        own = _read_ignore(folder) if any(e.name == ".gitignore" for e in entries) else None
        here = (*ignores, own) if own else ignores
        for entry in entries:
            shown = entry.name if name == "." else f"{name}/{entry.name}"
            try:
                is_folder = entry.is_dir()
            except OSError:
                is_folder = False
            if not is_folder and not entry.name.endswith(SUFFIXES):
                continue
            is_link = entry.is_symlink()
            if is_link and not _below(entry.path, root):
                continue  # what a link reaches outside was not named
            if is_folder and (entry.name in SKIPPED or _is_environment(entry.path)):
                continue
            if here and _ignored(here, entry.path, is_folder):
                continue
            if excluded is not None:
                inner = os.path.relpath(entry.path, root).replace(os.sep, "/") + "/" * is_folder
                if excluded.match_file(inner):
                    continue
            is_link = is_link or folder in linked
            if not is_folder:
                yield File(Path(entry.path), shown, real="" if is_link else entry.path)
                continue
            stack.append((entry.path, shown, here))
            if is_link:
                linked.add(entry.path)


def _below(path: str, root: str) -> bool:
    real = os.path.realpath(path)
    return real == root or real.startswith(root + os.sep)


def _is_environment(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "pyvenv.cfg"))
