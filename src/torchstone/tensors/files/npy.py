"""`.npy` files: the header is parsed by numpy without unpickling, the data read where needed."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import IO

import numpy as np
import torch

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.tensors.files.stored import FileBytes, StoredTensor, damaged, truncated

ENDINGS = (".npy",)
_HEADER = 1 << 16
_SIZES = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_UNSIGNED = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}
_FLOATS = {2: torch.float16, 4: torch.float32, 8: torch.float64}
_COMPLEX = {8: torch.complex64, 16: torch.complex128}


def read_entries(path: Path) -> list[StoredTensor]:
    """The one array of the file."""
    with path.open("rb") as file:
        shape, order, kind, start = read_header(file, path)
    entry = stored_array(path.stem, shape, order, kind, FileBytes(path, start), path)
    if path.stat().st_size - start < math.prod(shape) * kind.itemsize:
        raise truncated(path)
    return [entry]


def read_header(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Shape, Fortran order, type and where the data begins."""
    begin = io.BytesIO(file.read(_HEADER))
    try:
        version = np.lib.format.read_magic(begin)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else None
        read = read or np.lib.format.read_array_header_2_0
        shape, order, kind = read(begin, max_header_size=_HEADER)
    except (ValueError, SyntaxError, TypeError, MemoryError) as error:
        said = str(error).splitlines()[0][:120]
        raise damaged(
            path, Text(f"no .npy header ({said})", f"没有 .npy 文件头（{said}）")
        ) from None
    if any(type(size) is not int or size < 0 for size in shape):
        raise damaged(path, Text(f"shape {shape}", f"形状 {shape}"))
    return tuple(shape), bool(order), kind, begin.tell()


def stored_array(
    name: str,
    shape: tuple[int, ...],
    fortran: bool,
    kind: np.dtype,
    data: object,
    path: Path,
) -> StoredTensor:
    """An array of a numpy type; object arrays are refused, for they hold a pickle."""
    dtype = _torch_type(kind)
    if dtype is None:
        raise InputError(
            f"{path}: {name}", Text(f"an array of {kind}", f"类型为 {kind} 的数组"),
            Text("an array of numbers", "数值数组"),
            Text("save it with a numeric dtype; object arrays hold pickles and are never opened",
                 "请以数值类型保存；对象数组含 pickle，不会被打开"),
        )  # fmt: skip
    swapped = kind.byteorder == ">" and kind.itemsize > 1
    if fortran and len(shape) > 1:  # the same bytes, read as the transposed array
        shape = tuple(reversed(shape))
    return StoredTensor(name, shape, dtype, data, path, swapped=swapped)  # type: ignore[arg-type]


def _torch_type(kind: np.dtype) -> torch.dtype | None:
    table = {"i": _SIZES, "u": _UNSIGNED, "f": _FLOATS, "c": _COMPLEX}.get(kind.kind, {})
    return torch.bool if kind.kind == "b" else table.get(kind.itemsize)
