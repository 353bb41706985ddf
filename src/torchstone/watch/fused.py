"""The C pass: built once with the system's compiler, kept in the user's cache, loaded by ctypes."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.files import cache_folder

SOURCE = Path(__file__).with_name("fused.c")
LEVELS = 8
ROW = np.dtype(
    [("sum_of_squares", "f8"), ("largest", "f8"), ("nan", "i8"), ("infinite", "i8"),
     ("zero", "i8"), ("beyond", "i8"), ("below", "i8", (LEVELS,))]
)  # fmt: skip
STEP = np.dtype(
    [("update_squares", "f8"), ("weight_squares", "f8"), ("changed", "i8"), ("pushed", "i8"),
     ("absorbed", "i8"), ("not_finite", "i8"), ("digest", "u8")]
)  # fmt: skip
_BUILD_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Fused:
    """The loaded library; its functions release the interpreter while they read."""

    library: ctypes.CDLL

    def read(
        self, pointers: NDArray[np.uint64], sizes: NDArray[np.int64], kinds: NDArray[np.int32],
        levels: NDArray[np.uint8], limits: NDArray[np.float64], rows: NDArray[np.void],
        histograms: NDArray[np.int64] | None,
    ) -> None:  # fmt: skip
        """One row of counts for every tensor."""
        self.library.torchstone_pass(
            len(pointers), pointers.ctypes.data, sizes.ctypes.data, kinds.ctypes.data,
            levels.ctypes.data, limits.ctypes.data, rows.ctypes.data,
            None if histograms is None else histograms.ctypes.data,
        )  # fmt: skip

    def sample(
        self, pointers: NDArray[np.uint64], sizes: NDArray[np.int64], kinds: NDArray[np.int32],
        out: NDArray[np.float32],
    ) -> None:  # fmt: skip
        """Evenly spread values of every tensor, one row each."""
        self.library.torchstone_sample(
            len(pointers), pointers.ctypes.data, sizes.ctypes.data, kinds.ctypes.data,
            out.shape[1], out.ctypes.data,
        )  # fmt: skip

    def step(
        self, sizes: NDArray[np.int64], before: NDArray[np.float32], after: NDArray[np.float32],
        gradients: NDArray[np.float32], steps: NDArray[np.void],
    ) -> None:  # fmt: skip
        """What a step did to the sampled weights."""
        self.library.torchstone_step(
            len(sizes), sizes.ctypes.data, before.shape[1], before.ctypes.data,
            after.ctypes.data, gradients.ctypes.data, steps.ctypes.data,
        )  # fmt: skip

    def push(
        self, values: NDArray[np.float64], floors: NDArray[np.float64],
        median: NDArray[np.float64], spread: NDArray[np.float64], up: NDArray[np.float64],
        down: NDArray[np.float64], extra: float, clip: float, row_clipped: NDArray[np.float64],
        row_raw: NDArray[np.float64],
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64], int]:  # fmt: skip
        """Where one value of every series lies; see `Bank`."""
        count = len(values)
        places = np.empty((3, count))
        flags = np.empty((2, count), np.bool_)
        found = self.library.torchstone_push(
            count, values.ctypes.data, floors.ctypes.data, median.ctypes.data, spread.ctypes.data,
            up.ctypes.data, down.ctypes.data, extra, clip, places.ctypes.data,
            places[1].ctypes.data, places[2].ctypes.data, flags.ctypes.data, flags[1].ctypes.data,
            row_clipped.ctypes.data, row_raw.ctypes.data,
        )  # fmt: skip
        return flags[1], flags[0], places[1], places[2], int(found)


@functools.cache
def load_fused() -> Fused | str:
    """The library, or the reason why there is none."""
    compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), "")
    try:
        return _load(compiler)
    except (OSError, subprocess.SubprocessError) as error:
        return f"{type(error).__name__}: {error}"


def _load(compiler: str) -> Fused | str:
    source = SOURCE.read_bytes()
    machine = f"{platform.system()}-{platform.machine()}-{platform.node()}".encode()
    name = hashlib.sha256(source + b"\0" + machine).hexdigest()[:20]
    path = cache_folder() / f"fused-{name}.so"
    if not _trusted(path):
        if not compiler:
            return "no C compiler (cc, gcc or clang) was found"
        if reason := _build(compiler, path):
            return reason
    library = ctypes.CDLL(str(path))
    pointer: Any = ctypes.c_void_p
    count: Any = ctypes.c_int64
    library.torchstone_pass.argtypes = [count] + [pointer] * 7
    library.torchstone_sample.argtypes = [count, pointer, pointer, pointer, count, pointer]
    library.torchstone_step.argtypes = [count, pointer, count] + [pointer] * 4
    number: Any = ctypes.c_double
    library.torchstone_push.argtypes = [count] + [pointer] * 6 + [number] * 2 + [pointer] * 7
    library.torchstone_push.restype = count
    for function in ("torchstone_pass", "torchstone_sample", "torchstone_step"):
        getattr(library, function).restype = None
    return Fused(library)


def _trusted(path: Path) -> bool:
    """Loaded code must be the user's own file, in a folder that nobody else can write to."""
    try:
        for item in (path, path.parent):
            status = item.stat()
            if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return False
    except FileNotFoundError:
        return False
    return True


def _build(compiler: str, path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.parent.stat().st_uid != os.getuid():
        return f"{path.parent} belongs to another user"
    if path.parent.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{path.parent} can be written by others"
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        built = Path(folder) / "fused.so"
        command = [compiler, "-O3", "-march=native", "-fno-math-errno", "-Wno-psabi", "-shared",
                   "-fPIC", "-o", str(built), str(SOURCE), "-lm"]  # fmt: skip
        result = subprocess.run(command, capture_output=True, timeout=_BUILD_SECONDS, check=False)
        if result.returncode:
            last = result.stderr.decode(errors="replace").strip().splitlines()[-1:]
            return f"{Path(compiler).name} failed: {' '.join(last)}"
        built.chmod(0o600)
        os.replace(built, path)
    return ""
