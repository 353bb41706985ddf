"""`.gguf` files: a header of our own reading; quantised blocks are unpacked by the gguf package."""

from __future__ import annotations

import importlib.util
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.tensors.files.stored import FileBytes, StoredTensor, damaged

ENDINGS = (".gguf",)
_MOST = 1 << 20
"""Tensors, keys or array lengths beyond this are a lie or a mistake."""
_LONGEST = 1 << 26  # bytes of one string: tokenizers carry long ones
_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
_PLAIN = {
    0: torch.float32, 1: torch.float16, 24: torch.int8, 25: torch.int16, 26: torch.int32,
    27: torch.int64, 28: torch.float64, 30: torch.bfloat16,
}  # fmt: skip
_ALIGNMENT = 32


def _too_long(count: int) -> Text:
    return Text(
        f"a header that wants {count:,} bytes more than there are", f"文件头多要了 {count:,} 字节"
    )


class _Reader:
    """Numbers and strings of the header, with every length checked against the file."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.file, self.path = file, path
        self.size = path.stat().st_size

    def take(self, count: int) -> bytes:
        data = self.file.read(count) if 0 <= count <= self.size else b""
        if len(data) < count or count < 0:
            raise damaged(self.path, _too_long(count))
        return data

    def skip(self, count: int) -> None:
        """Passes over bytes without reading them: an array may be as long as the file."""
        if count > self.size - self.file.tell():
            raise damaged(self.path, _too_long(count))
        self.file.seek(count, 1)

    def number(self, code: str) -> int:
        return int(struct.unpack("<" + code, self.take(struct.calcsize(code)))[0])

    def limited(self, code: str, most: int, what: Text) -> int:
        value = self.number(code)
        if value > most:
            raise damaged(self.path, Text(f"{value:,} {what.en}", f"{value:,} {what.zh}"))
        return value

    def text(self) -> str:
        return self.take(
            self.limited("Q", _LONGEST, Text("bytes in one string", "字节的单个字符串"))
        ).decode("utf-8", "replace")

    def skip_value(self, kind: int, depth: int = 0) -> int | None:
        """Passes over one metadata value; gives it when it is a small integer."""
        if kind == _STRING:
            self.text()
        elif kind == _ARRAY and depth < 4:
            inner, count = self.number("I"), self.number("Q")
            if inner in _SCALARS:
                self.skip(_SCALARS[inner] * count)
            else:
                if count > self.size:
                    raise damaged(
                        self.path, Text(f"an array of {count:,}", f"长度为 {count:,} 的数组")
                    )
                for _ in range(count):
                    self.skip_value(inner, depth + 1)
        elif kind in _SCALARS:
            data = self.take(_SCALARS[kind])
            return int.from_bytes(data, "little")
        else:
            raise damaged(self.path, Text(f"metadata of type {kind}", f"类型为 {kind} 的元数据"))
        return None


def read_entries(path: Path) -> list[StoredTensor]:
    """The tensors of a GGUF file; shapes are given as torch has them (the file has them reversed)."""
    with path.open("rb") as file:
        reader = _Reader(file, path)
        if reader.take(4) != b"GGUF":
            raise damaged(path, Text("no GGUF header", "没有 GGUF 文件头"))
        version = reader.number("I")
        if version not in (2, 3):
            raise damaged(path, Text(f"GGUF version {version}", f"GGUF 版本 {version}"))
        tensors = reader.limited("Q", _MOST, Text("tensors", "个张量"))
        keys = reader.limited("Q", _MOST, Text("metadata keys", "个元数据键"))
        alignment = _ALIGNMENT
        for _ in range(keys):
            key, kind = reader.text(), reader.number("I")
            value = reader.skip_value(kind)
            if key == "general.alignment" and value:
                alignment = value
        infos = [_info(reader) for _ in range(tensors)]
        start = -(-file.tell() // alignment) * alignment
    return [_stored(info, start, path) for info in infos]


@dataclass(frozen=True, slots=True)
class _Info:
    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


def _info(reader: _Reader) -> _Info:
    name = reader.text()
    dims = reader.limited("I", 8, Text("dimensions", "个维度"))
    shape = tuple(reversed([reader.number("Q") for _ in range(dims)]))
    return _Info(name, shape, reader.number("I"), reader.number("Q"))


def _stored(info: _Info, start: int, path: Path) -> StoredTensor:
    begin = start + info.offset
    count = math.prod(info.shape)
    plain = _PLAIN.get(info.kind)
    if plain is not None:
        _check_end(info, begin + count * plain.itemsize, path)
        return StoredTensor(info.name, info.shape, plain, FileBytes(path, begin), path)
    packed = _packed_bytes(info, begin, path)
    _check_end(info, begin + -(-count // packed.block) * packed.block_bytes, path)
    return StoredTensor(info.name, info.shape, torch.float32, packed, path, packed.name)


def _check_end(info: _Info, end: int, path: Path) -> None:
    if end > path.stat().st_size:
        raise damaged(
            path,
            Text(
                f"{info.name!r} of shape {info.shape} ends beyond the file",
                f"形状为 {info.shape} 的 {info.name!r} 超出文件末尾",
            ),
        )


@dataclass(frozen=True)
class PackedBlocks:
    """Quantised blocks, unpacked to fp32 as they are read."""

    packed: FileBytes
    kind: Any
    name: str
    block: int
    block_bytes: int

    def read(self, offset: int, size: int) -> bytes:
        from gguf.quants import dequantize

        first = offset // (4 * self.block)
        last = -(-(offset + size) // (4 * self.block))
        raw = self.packed.read(first * self.block_bytes, (last - first) * self.block_bytes)
        values = dequantize(np.frombuffer(raw, np.uint8), self.kind).astype(np.float32)
        begin = offset - first * self.block * 4
        return bytes(values.tobytes()[begin : begin + size])


def _packed_bytes(info: _Info, begin: int, path: Path) -> PackedBlocks:
    if importlib.util.find_spec("gguf") is None:
        raise InputError(
            f"{path}: {info.name}", Text(f"quantised type {info.kind}", f"量化类型 {info.kind}"),
            Text("the gguf package, which unpacks it", "用于解包的 gguf 包"), "pip install gguf",
        )  # fmt: skip
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import _type_traits

    try:
        kind = GGMLQuantizationType(info.kind)
        block, block_bytes = GGML_QUANT_SIZES[kind]
    except (ValueError, KeyError):
        raise damaged(
            path,
            Text(
                f"{info.name!r} of unknown type {info.kind}", f"{info.name!r}，未知类型 {info.kind}"
            ),
        ) from None
    if kind not in _type_traits:
        raise InputError(
            f"{path}: {info.name}", Text(f"type {kind.name}", f"类型 {kind.name}"),
            Text("a type that the gguf package can unpack", "gguf 包能够解包的类型"),
            Text("convert the file to another type", "请将文件转换为其他类型"),
        )  # fmt: skip
    return PackedBlocks(FileBytes(path, begin), kind, kind.name, block, block_bytes)
