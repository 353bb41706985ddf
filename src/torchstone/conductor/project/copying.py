"""A copy of a project to work on: tools and tests change the copy, never the user's tree."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.sandbox.run import give_to_nobody
from torchstone.sources.discover import SKIPPED

_LARGE_BYTES = 16 << 20
"""Data and checkpoints: linked, not copied; they stay readable and cannot be changed."""
_MOST_FILES = 50_000
"""More is a folder of data, and no project."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copied project in a scratch folder of its own."""

    home: Path
    """The scratch folder: what a confined command may write."""
    project: Path
    original: Path
    digest: str
    """Of names and contents; equal trees have equal digests."""


@contextlib.contextmanager
def copied(root: Path, original: Path | None = None) -> Iterator[Copy]:
    """A copy for as long as it is needed; `original` is the project where `root` is itself a copy."""
    home = Path(tempfile.mkdtemp(prefix="torchstone-review-"))
    try:
        home.chmod(0o711)  # commands that are started as nobody pass through it
        yield make_copy(root, home, original or root)
    finally:
        _remove(home)


def _remove(home: Path) -> None:
    try:
        shutil.rmtree(home, ignore_errors=True)
    except RecursionError:  # folders nested more deeply than Python goes
        subprocess.run(["rm", "-rf", "--", str(home)], check=False)


def make_copy(root: Path, home: Path, original: Path) -> Copy:
    project = home / "project"
    project.mkdir()
    digest = hashlib.sha256()
    for count, path in enumerate(_files(root, original)):
        if count > _MOST_FILES:
            raise InputError(
                str(root), f"more than {_MOST_FILES:,} files",
                Text("the folder of a project", "项目文件夹"),
                Text("name the folder that holds the code", "请指定代码所在的文件夹"),
            )  # fmt: skip
        _copy_file(root, path, project, digest)
    give_to_nobody(home)
    return Copy(home, project, original, digest.hexdigest())


def _files(root: Path, original: Path) -> Iterator[Path]:
    try:
        yield from project_files(root, original)
    except RecursionError:
        raise InputError(
            str(root), "folders nested more deeply than can be read",
            Text("the folder of a project", "项目文件夹"),
            Text("name the folder that holds the code", "请指定代码所在的文件夹"),
        ) from None  # fmt: skip


def digest_of(root: Path, original: Path) -> str:
    """The digest that a copy of this tree would have."""
    digest = hashlib.sha256()
    for path in project_files(root, original):
        _note(path.relative_to(root), path, digest)
    return digest.hexdigest()


def _note(name: Path, path: Path, digest: hashlib._Hash) -> bytes | None:
    """Add a file to a digest; its bytes where it is small enough to be copied."""
    status = path.stat()
    digest.update(os.fsencode(name) + b"\0")
    if status.st_size > _LARGE_BYTES:
        digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
        return None
    try:
        data = path.read_bytes()
    except PermissionError:
        return b""
    digest.update(hashlib.sha256(data).digest())
    return data


def project_files(root: Path, original: Path | None = None) -> Iterator[Path]:
    """Regular files below the root, in order of name; caches, environments and `.git` are left."""
    for place, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(names):
            path = Path(place, name)
            with contextlib.suppress(OSError):
                if stat.S_ISREG(path.stat().st_mode) and _is_inside(path, root, original or root):
                    yield path


def _is_inside(path: Path, root: Path, original: Path) -> bool:
    """A link that leads out of the project is not followed; one of a copy leads to the project."""
    if not path.is_symlink():
        return True
    target = path.resolve()
    return target.is_relative_to(root.resolve()) or target.is_relative_to(original.resolve())


def _copy_file(root: Path, path: Path, project: Path, digest: hashlib._Hash) -> None:
    name = path.relative_to(root)
    target = project / name
    target.parent.mkdir(parents=True, exist_ok=True)
    data = _note(name, path, digest)
    if data is None:
        target.symlink_to(path.resolve())
        return
    target.write_bytes(data)
    target.chmod(path.stat().st_mode & 0o777 | 0o600)
