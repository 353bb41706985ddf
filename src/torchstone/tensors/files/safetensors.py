"""`.safetensors` files: a JSON header that must account for every byte."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import torch

from torchstone.core.text import Text
from torchstone.tensors.files.stored import FileBytes, StoredTensor, check_count, damaged

ENDINGS = (".safetensors",)
_MOST_HEADER = 100_000_000  # as the safetensors library has it
_TYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
    "U16": torch.uint16, "U32": torch.uint32, "U64": torch.uint64, "BOOL": torch.bool,
    "C64": torch.complex64,
}  # fmt: skip
if hasattr(torch, "float8_e8m0fnu"):  # since torch 2.7
    _TYPES["F8_E8M0"] = torch.float8_e8m0fnu


def read_entries(path: Path) -> list[StoredTensor]:
    """The tensors that the header names, after checking that they tile the file exactly."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        length = int.from_bytes(head, "little")
        if len(head) < 8 or length > min(_MOST_HEADER, size - 8):
            raise damaged(
                path,
                Text(
                    f"a header of {length:,} bytes in a file of {size:,}",
                    f"{size:,} 字节的文件中有 {length:,} 字节的文件头",
                ),
            )
        text = file.read(length)
    table = _parsed(text, path)
    check_count(path, len(table))
    start = 8 + length
    entries = [_entry(name, item, start, path) for name, item in table.items()]
    _check_tiling([item["data_offsets"] for item in table.values()], size - start, path)
    return entries


def _parsed(text: bytes, path: Path) -> dict[str, dict[str, list[int]]]:
    def no_twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name twice")
        return found

    try:
        table = json.loads(text, object_pairs_hook=no_twice)
    except (ValueError, RecursionError) as error:
        raise damaged(
            path, Text(f"a header that is no JSON ({error})", f"文件头不是 JSON（{error}）")
        ) from None
    if not isinstance(table, dict):
        raise damaged(
            path,
            Text(f"a header that is a {type(table).__name__}", f"文件头是 {type(table).__name__}"),
        )
    table.pop("__metadata__", None)
    return table


def _entry(name: str, item: object, start: int, path: Path) -> StoredTensor:
    if not isinstance(item, Mapping) or not {"dtype", "shape", "data_offsets"} <= item.keys():
        raise damaged(
            path,
            Text(
                f"no dtype, shape and data_offsets for {name!r}",
                f"{name!r} 缺少 dtype、shape 或 data_offsets",
            ),
        )
    dtype = _TYPES.get(str(item["dtype"]))
    if dtype is None:
        raise damaged(
            path,
            Text(f"dtype {item['dtype']!r} of {name!r}", f"{name!r} 的 dtype {item['dtype']!r}"),
        )
    shape, offsets = item["shape"], item["data_offsets"]
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(type(n) is int and n >= 0 for n in numbers):
            raise damaged(
                path,
                Text(f"{numbers!r} in the entry of {name!r}", f"{name!r} 条目中的 {numbers!r}"),
            )
    if len(offsets) != 2 or offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise damaged(
            path,
            Text(
                f"bytes {offsets} for {name!r} of shape {shape} and {item['dtype']}",
                f"{name!r}（形状 {shape}，{item['dtype']}）的字节范围 {offsets}",
            ),
        )
    return StoredTensor(name, tuple(shape), dtype, FileBytes(path, start + offsets[0]), path)


def _check_tiling(ranges: list[list[int]], size: int, path: Path) -> None:
    """Tensors follow each other without gap or overlap, up to the end of the file."""
    place = 0
    for begin, end in sorted(ranges):
        if begin != place:
            raise damaged(
                path,
                Text(
                    f"tensors that overlap or leave a gap at byte {place:,}",
                    f"张量在第 {place:,} 字节处重叠或留有空隙",
                ),
            )
        place = end
    if place != size:
        raise damaged(
            path,
            Text(
                f"{size:,} bytes of data where the header says {place:,}",
                f"数据有 {size:,} 字节，而文件头声明 {place:,} 字节",
            ),
        )
