"""Files are written whole or not at all, and only regular files are read."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.core.text import Text


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write beside the target, flush to disk, then take its name; a crash leaves the old file."""
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        _write_into(path, data)
        return
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        name = str(target.parent / f".{target.name[:40]}.{os.getpid()}.{os.urandom(4).hex()}")
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(name, target.stat().st_mode & 0o7777)
            os.replace(name, target)
            return
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise _unwritable(path, error) from None


def _write_into(path: Path, data: bytes) -> None:
    """A pipe or a device is written into; taking its name would destroy it. Opened without
    waiting: a pipe that nobody reads must not hold up a run."""
    try:
        handle = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "wb") as file:
            if hasattr(os, "set_blocking"):
                os.set_blocking(handle, True)
            file.write(data)
    except OSError as error:
        raise _unwritable(path, error) from None


def read_regular(path: Path | str, limit: int) -> bytes:
    """The bytes of a regular file; OSError for a pipe, a device, a folder or a larger file.

    Opened without waiting: a pipe that nobody writes to must not hold up a run.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if status.st_size > limit:
            size = f"{status.st_size / 2**20:.0f} MiB, more than {limit / 2**20:.0f} MiB"
            raise OSError(errno.EFBIG, size)
        return file.read(min(status.st_size + 1, limit))  # a buffer of the limit would be slow


def keep_out_of_git(folder: Path) -> None:
    """A `.gitignore` that names everything; written once, never through a link that lies there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        handle = os.open(folder / ".gitignore", flags, 0o644)
    except FileExistsError:
        return
    with os.fdopen(handle, "w") as file:
        file.write("*\n")


def cache_folder() -> Path:
    """The user's cache folder for this platform."""
    if home := os.environ.get("XDG_CACHE_HOME"):
        return Path(home) / "torchstone"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "torchstone"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "torchstone" / "cache"
    return Path.home() / ".cache" / "torchstone"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        str(path),
        error.strerror or type(error).__name__,
        Text("a place that can be written", "可写的位置"),
        Text("choose another path with --output", "请用 --output 指定其他路径"),
    )
