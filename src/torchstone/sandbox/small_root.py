"""A root folder with little in it: system libraries, Python, named packages and one folder of its own.

What is not there can neither be read nor looked for: `stat` of any other path says that there is no such file.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import re
import socket
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_MS_BIND, _MS_REC, _MS_PRIVATE, _MS_NOSUID = 0x1000, 0x4000, 1 << 18, 2
_CLONE_NEWUTS = 0x04000000
_SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives",
           "/proc", "/dev/null", "/dev/zero", "/dev/urandom")  # fmt: skip
_PLACES = ("/mnt", "/media", "/srv", "/opt")
"""Where the new root is put together: folders that programs do not need, and not in `home`, which goes away."""
_OTHERS_PACKAGES = ("site-packages", "dist-packages")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def enter_small_root(home: Path, packages: Iterable[str]) -> str:
    """Make it the root of this process, where that is allowed; what holds it, or `none`.

    The process needs mounts of its own (`unshare -m`). `home` stays where it is.
    """
    if not sys.platform.startswith("linux") or not hasattr(_LIBC, "mount"):
        return "none"
    root = next((path for path in map(Path, _PLACES) if path.is_dir()), None)
    if root is None:
        return "none"
    if _mount("none", "/", "", _MS_REC | _MS_PRIVATE) or _mount("tmpfs", root, "tmpfs", _MS_NOSUID):
        return "none"
    for path in dict.fromkeys([*map(Path, _SYSTEM), *python_paths(), *package_paths(packages)]):
        if not _bring(path, root):
            return "none"
    for folder in _standard_folders():
        for name in _OTHERS_PACKAGES:
            inside = root / str(folder / name).lstrip("/")
            if inside.is_dir() and not any(inside.glob("torch")):
                _mount("tmpfs", inside, "tmpfs", _MS_NOSUID)
    if not _bring(home, root, _MS_BIND):
        return "none"
    os.chroot(root)
    os.chdir(home)
    if _LIBC.unshare(_CLONE_NEWUTS) == 0:
        socket.sethostname("localhost")
    return "own root folder"


def _mount(source: str, target: Path | str, kind: str, flags: int) -> int:
    found = _LIBC.mount(
        os.fsencode(source), os.fsencode(target), kind.encode() or None, flags, None
    )
    return int(found)


def _bring(path: Path, root: Path, flags: int = _MS_BIND | _MS_REC) -> bool:
    """The same file or folder below the new root; what does not exist is left out."""
    target = root / str(path).lstrip("/")
    if path.is_symlink():
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_symlink():
            target.symlink_to(os.readlink(path))
        return True
    if not path.exists() or any(parent in _COVERED for parent in map(str, path.parents)):
        return True
    if path.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    return _mount(str(path), target, "", flags) == 0


_COVERED = ("/usr", "/proc")
"""Folders that are brought as a whole: what lies in them is there."""


def python_paths() -> Iterator[Path]:
    """The standard library and what the interpreter itself needs, without installed packages."""
    yield from _standard_folders()
    yield Path(sys.base_prefix, "lib").joinpath(
        sysconfig.get_config_var("LDLIBRARY") or "libpython"
    )
    yield Path(sys.executable).resolve()
    yield Path(sys.prefix, "pyvenv.cfg")


def _standard_folders() -> list[Path]:
    return [Path(sysconfig.get_path("stdlib")).resolve()]


def package_paths(names: Iterable[str]) -> Iterator[Path]:
    """Installed packages and all that they depend on."""
    waiting, known = list(names), set[str]()
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in known:
            continue
        known.add(name)
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        home = Path(str(found.locate_file("")))
        for part in _parts_of(found, name):
            yield from home.glob(part)
        for requirement in found.requires or ():
            needed = _NAME.match(requirement)
            if needed is not None and "extra ==" not in requirement:
                waiting.append(needed[0])


def _parts_of(found: importlib.metadata.Distribution, name: str) -> Iterator[str]:
    """Patterns for what a package has in the folder of packages."""
    told = (found.read_text("top_level.txt") or "").split()
    for part in {*told, name.replace("-", "_"), name.partition("-")[0]}:
        yield part
        yield f"{part}.py"
        yield f"{part}.*.so"
        yield f"{part}.libs"
    yield f"{name.replace('-', '_')}-*.dist-info"
    yield f"{name}-*.dist-info"
