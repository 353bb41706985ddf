"""A C file of the package: built once with the system's compiler, kept in the user's cache."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from torchstone.core.files import cache_folder

_BUILD_SECONDS = 60
_FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-Wno-psabi", "-shared", "-fPIC")


def load_c_library(source: Path) -> ctypes.CDLL | str:
    """The loaded library, or the reason why there is none."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), "")
    try:
        path = _cached_path(source)
        if not _is_trusted(path):
            if not compiler:
                return "no C compiler (cc, gcc or clang) was found"
            if reason := _build(compiler, source, path):
                return reason
        return ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError) as error:
        return f"{type(error).__name__}: {error}"


def _cached_path(source: Path) -> Path:
    """Named after the source and the machine: `-march=native` code fits one kind of CPU."""
    machine = f"{platform.system()}-{platform.machine()}-{platform.node()}".encode()
    digest = hashlib.sha256(source.read_bytes() + b"\0" + machine).hexdigest()[:20]
    return cache_folder() / f"{source.stem}-{digest}.so"


def _is_trusted(path: Path) -> bool:
    """Loaded code must be the user's own file, in a folder that nobody else can write to."""
    try:
        for item in (path, path.parent):
            status = item.stat()
            if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return False
    except FileNotFoundError:
        return False
    return True


def _build(compiler: str, source: Path, path: Path) -> str:
    """Compile beside the target, then take its name; gives the reason when that fails."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = path.parent.stat()
    if status.st_uid != os.getuid():
        return f"{path.parent} belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{path.parent} can be written by others"
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        built = Path(folder) / "built.so"
        command = [compiler, *_FLAGS, "-o", str(built), str(source), "-lm"]
        result = subprocess.run(command, capture_output=True, timeout=_BUILD_SECONDS, check=False)
        if result.returncode:
            last = result.stderr.decode(errors="replace").strip().splitlines()[-1:]
            return f"{Path(compiler).name} failed: {' '.join(last)}"
        built.chmod(0o600)
        os.replace(built, path)
    return ""
