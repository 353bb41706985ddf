"""Files that the program writes go to a scratch folder; it reads them back from there.

The user's own files are read as they are and never changed.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

from torchstone.core.place import Place
from torchstone.dryrun.script.patches import put
from torchstone.starting.lookups import Lookups, note_patterns
from torchstone.starting.replacements.imports import when_imported

_OWN = ("/dev/", "/proc/", "/sys/")


class Overlay:
    """Maps the paths of the user's files to their copies in the scratch folder."""

    def __init__(self, scratch: str) -> None:
        self.root = os.path.join(os.path.realpath(scratch), "files")
        self.scratch = os.path.realpath(scratch)
        self.written: dict[str, None] = {}
        self._gone: set[str] = set()
        """Files and folders of the user that were removed: they stay hidden, with all below them."""
        self._unfound = Lookups(os.path.join(self.scratch, "unfound"))
        self._folder = ""
        """Where the program is, if that is a folder which it has made."""
        os.makedirs(self.root, exist_ok=True)

    def absolute(self, path: Any) -> str | None:
        """The plain path, or None for what is not to be mapped (numbers, devices, the scratch)."""
        if isinstance(path, int) or path is None:
            return None
        text = os.path.abspath(os.fsdecode(os.fspath(path)))
        if text.startswith((*_OWN, self.scratch + os.sep)) or text == self.scratch:
            return None
        return text

    def enter(self, path: Any) -> None:
        """Change the folder; one that the program has made is entered by its own name."""
        text = self.absolute(path)
        is_made = text is not None and not _real_isdir(text) and _real_isdir(self.copy_of(text))
        _real_chdir(self.copy_of(text) if text is not None and is_made else path)
        self._folder = text if text is not None and is_made else ""

    def folder(self) -> str:
        return self._folder or _real_getcwd()

    def copy_of(self, path: str) -> str:
        return self.root + path

    def is_gone(self, path: str) -> bool:
        """Whether a real file is hidden, because it or a folder above it was removed."""
        if not self._gone:
            return False
        while path not in self._gone:
            above = os.path.dirname(path)
            if above == path:
                return False
            path = above
        return True

    def hide(self, path: str) -> None:
        self._gone.add(path)
        self.written.pop(path, None)

    def unfound(self) -> tuple[str, ...]:
        """Data that the program looked for in vain, the latest last; it has not made them itself since."""
        return tuple(path for path in self._unfound.paths() if path not in self.written)

    def looked_for(self, path: str) -> Place:
        """The line of the program that looked for a path in vain."""
        return self._unfound.looked_for(path)

    def note_unfound(self, path: Any) -> None:
        text = self.absolute(path)
        if text is not None:
            self._unfound.note(text)

    def to_read(self, path: Any) -> Any:
        """Where the path is found now."""
        text = self.absolute(path)
        if text is None:
            return path
        copy = self.copy_of(text)
        if _real_lexists(copy):
            return copy
        if self.is_gone(text):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        if not _real_lexists(text):
            self.note_unfound(path)
        return path

    def to_write(self, path: Any, keep: bool = False) -> Any:
        """Where the path may be written; with `keep` what it holds is copied there first."""
        text = self.absolute(path)
        if text is None:
            return path
        copy = self.copy_of(text)
        parent = os.path.dirname(text)
        if not _real_isdir(os.path.dirname(copy)):
            if not _real_isdir(parent) or self.is_gone(parent):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
            _real_makedirs(os.path.dirname(copy))
        if keep and not _real_lexists(copy) and _real_isfile(text) and not self.is_gone(text):
            _real_copy(text, copy)
        self.written[text] = None
        return copy

    def remove(self, path: Any, real: Callable[[Any], Any]) -> None:
        text = self.absolute(path)
        if text is None:
            real(path)
            return
        copy = self.copy_of(text)
        if _real_lexists(copy):
            real(copy)
        elif not _real_lexists(text) or self.is_gone(text):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        self.hide(text)

    def names(self, path: Any) -> list[str]:
        text = self.absolute(path if path is not None else ".")
        if text is None:
            return _real_listdir(path)
        copy = self.copy_of(text)
        found: dict[str, None] = {}
        if _real_isdir(copy):
            found.update(dict.fromkeys(_real_listdir(copy)))
        if _real_isdir(text):
            here = (
                name for name in _real_listdir(text) if not self.is_gone(os.path.join(text, name))
            )
            found.update(dict.fromkeys(here))
        elif not _real_isdir(copy):
            self.note_unfound(text)
            return _real_listdir(path)  # raises what it should
        if not _real_isdir(copy) and self.is_gone(text):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        if all(name.startswith(".") for name in found):  # a mark that keeps an empty folder
            self.note_unfound(text)
        return list(found)


_real_open, _real_os_open = builtins.open, os.open
_real_stat, _real_lstat, _real_listdir, _real_scandir = os.stat, os.lstat, os.listdir, os.scandir
_real_mkdir, _real_rename, _real_remove, _real_rmdir = os.mkdir, os.rename, os.remove, os.rmdir
_real_chdir, _real_getcwd = os.chdir, os.getcwd
_real_access, _real_chmod, _real_utime, _real_truncate = os.access, os.chmod, os.utime, os.truncate


def _real_lexists(path: str) -> bool:
    try:
        _real_lstat(path)
    except OSError:
        return False
    return True


def _real_isdir(path: str) -> bool:
    import stat

    try:
        return stat.S_ISDIR(_real_stat(path).st_mode)
    except OSError:
        return False


def _real_isfile(path: str) -> bool:
    import stat

    try:
        return stat.S_ISREG(_real_stat(path).st_mode)
    except OSError:
        return False


def _real_makedirs(path: str) -> None:
    if not _real_isdir(path):
        _real_makedirs(os.path.dirname(path))
        _real_mkdir(path)


def _real_copy(source: str, target: str) -> None:
    with _real_open(source, "rb") as old, _real_open(target, "wb") as new:
        shutil.copyfileobj(old, new)


class _Entries:
    """What `os.scandir` gives, of both folders."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def close(self) -> None:
        pass


def keep_writes(scratch: str) -> Overlay:
    """From now on all that Python writes goes to the scratch folder."""
    overlay = Overlay(scratch)
    _map_open(overlay)
    _map_questions(overlay)
    _map_changes(overlay)
    note_patterns(overlay.note_unfound, put)
    put(shutil, "_use_fd_functions", False)  # it would remove by handle
    return overlay


def _map_open(overlay: Overlay) -> None:
    def mapped_open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("opener") is not None:
            return _real_open(file, mode, *args, **kwargs)
        if any(letter in mode for letter in "wax+"):
            if "x" in mode and os.path.lexists(file):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(file))
            target = overlay.to_write(file, keep="a" in mode or "r" in mode)
        else:
            target = overlay.to_read(file)
        return _real_open(target, mode, *args, **kwargs)

    def mapped_os_open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: Any = None) -> int:
        if dir_fd is not None:
            return _real_os_open(path, flags, mode, dir_fd=dir_fd)
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            target = overlay.to_write(path, keep=not flags & os.O_TRUNC)
        else:
            target = overlay.to_read(path)
        return _real_os_open(target, flags, mode)

    put(builtins, "open", mapped_open)
    put(io, "open", mapped_open)
    put(os, "open", mapped_os_open)
    when_imported("numpy.lib._datasource", lambda: _open_with(mapped_open))


def _open_with(mapped_open: Callable[..., Any]) -> None:
    """numpy keeps the function that it opens texts with from the time of its import."""
    library: Any = sys.modules["numpy.lib._datasource"]
    openers = getattr(library._file_openers, "_file_openers", {})
    if None in openers:
        openers[None] = mapped_open


def _map_questions(overlay: Overlay) -> None:
    def stat(path: Any, *args: Any, **kwargs: Any) -> Any:
        return _real_stat(overlay.to_read(path), *args, **kwargs)

    def lstat(path: Any, *args: Any, **kwargs: Any) -> Any:
        return _real_lstat(overlay.to_read(path), *args, **kwargs)

    def access(path: Any, mode: int, **kwargs: Any) -> bool:
        return True if mode == os.W_OK else _real_access(overlay.to_read(path), mode, **kwargs)

    def listdir(path: Any = None) -> Any:
        return _real_listdir(path) if isinstance(path, (int, bytes)) else overlay.names(path)

    def scandir(path: Any = None) -> Any:
        if isinstance(path, (int, bytes)):
            return _real_scandir(path)
        text = overlay.absolute(path if path is not None else ".")
        copy = overlay.copy_of(text) if text is not None else ""
        if text is None:
            return _real_scandir(path)
        visible = set(overlay.names(text if path is None else path))
        found: list[Any] = []
        if _real_isdir(copy):
            with _real_scandir(copy) as entries:
                found = list(entries)
        kept = visible - {entry.name for entry in found}
        if kept and _real_isdir(text):
            with _real_scandir(path if path is not None else ".") as entries:
                found += [entry for entry in entries if entry.name in kept]
        return _Entries(found)

    for name, value in (("stat", stat), ("lstat", lstat), ("access", access),
                        ("listdir", listdir), ("scandir", scandir)):  # fmt: skip
        put(os, name, value)


def _map_changes(overlay: Overlay) -> None:
    def mkdir(path: Any, mode: int = 0o777, *, dir_fd: Any = None) -> None:
        text = overlay.absolute(path)
        is_there = text is not None and (
            _real_lexists(overlay.copy_of(text))
            or (_real_isdir(text) and not overlay.is_gone(text))
        )
        if is_there:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
        _real_mkdir(overlay.to_write(path), mode)

    def remove(path: Any, *, dir_fd: Any = None) -> None:
        overlay.remove(path, _real_remove)

    def rmdir(path: Any, *, dir_fd: Any = None) -> None:
        if overlay.absolute(path) is not None and overlay.names(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), os.fspath(path))
        overlay.remove(path, _real_rmdir)

    def rename(src: Any, dst: Any, **kwargs: Any) -> None:
        source = overlay.to_write(src, keep=True)
        _real_rename(source, overlay.to_write(dst))
        if (text := overlay.absolute(src)) is not None:
            overlay.hide(text)

    def chmod(path: Any, mode: int, **kwargs: Any) -> None:
        _real_chmod(overlay.to_write(path, keep=True), mode)

    def truncate(path: Any, length: int) -> None:
        _real_truncate(overlay.to_write(path, keep=True), length)

    def utime(path: Any, *args: Any, **kwargs: Any) -> None:
        _real_utime(overlay.to_write(path, keep=True), *args, **kwargs)

    def link(src: Any, dst: Any, **kwargs: Any) -> None:
        _link(overlay, src, dst)

    changes = {"mkdir": mkdir, "rmdir": rmdir, "remove": remove, "unlink": remove, "rename": rename,
               "replace": rename, "chmod": chmod, "utime": utime, "truncate": truncate, "link": link, "symlink": link}  # fmt: skip
    for name, change in changes.items():
        put(os, name, change)
    put(os, "chdir", overlay.enter)
    put(os, "getcwd", overlay.folder)


def _link(overlay: Overlay, source: Any, target: Any) -> None:
    """A link into the user's files would be a way to write to them: a copy instead."""
    text = overlay.absolute(source) or os.fspath(source)
    place = overlay.to_write(target)
    if _real_isdir(text):
        _real_makedirs(place)
    elif _real_isfile(overlay.to_read(text)):
        _real_copy(overlay.to_read(text), place)
