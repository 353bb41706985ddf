"""A tensor that lies in a file: where its bytes are and what they mean; nothing is loaded yet."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.tensors.analysis.values.source import (
    CHUNK,
    MemorySource,
    Source,
    as_fp32,
    chosen_rows,
    grid_steps,
    plain,
)

WHOLE = 1 << 28
"""Bytes up to which one tensor is loaded; larger ones are read in pieces, so that memory stays
bounded whatever the file's size."""
_RUNS = 256


class Bytes(Protocol):
    """The bytes of one tensor, read where they are asked for."""

    def read(self, offset: int, size: int) -> bytes: ...


@dataclass(frozen=True)
class FileBytes:
    """A range of a file, read with pread: a mapping would count as resident memory."""

    path: Path
    start: int

    def read(self, offset: int, size: int) -> bytes:
        with self.path.open("rb") as file:
            parts, done = [], 0
            while done < size:  # one call gives 2 GiB at most
                part = os.pread(file.fileno(), size - done, self.start + offset + done)
                if not part:
                    raise truncated(self.path)
                parts.append(part)
                done += len(part)
        return b"".join(parts)


@dataclass
class PackedBytes:
    """A deflated member of a zip file: read forward, from the start again when asked to go back."""

    path: Path
    member: str
    skip: int
    _open: list[IO[bytes]] = field(default_factory=list)
    _place: int = 0

    def read(self, offset: int, size: int) -> bytes:
        wanted = self.skip + offset
        if not self._open or wanted < self._place:
            opened: Any = zipfile.Path(self.path, self.member).open("rb")
            self._open = [opened]
            self._place = 0
        file = self._open[0]
        try:
            while self._place < wanted:
                step = len(file.read(min(wanted - self._place, 1 << 22)))
                if not step:
                    raise truncated(self.path)
                self._place += step
            data = file.read(size)
        except (zipfile.BadZipFile, EOFError, OSError) as error:
            raise damaged(self.path, str(error)) from None
        self._place += len(data)
        if len(data) < size:
            raise truncated(self.path)
        return data


@dataclass(frozen=True)
class UnreadableBytes:
    """Of a tensor that is listed, with the reason why it cannot be read."""

    reason: InputError

    def read(self, offset: int, size: int) -> bytes:  # noqa: ARG002
        raise self.reason


@dataclass(frozen=True)
class StoredTensor:
    """Name, shape and type of a tensor, and how to read it."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    bytes: Bytes
    path: Path
    stored_as: str = ""
    """The file's own name of the type, where torch has none (`Q4_K`)."""
    swapped: bool = False
    """The bytes are in the other order than this machine's."""
    stride: tuple[int, ...] | None = None
    """None: row by row without gaps."""

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.count * self.dtype.itemsize

    def source(self) -> Source:
        """Its values, loaded if they are few, else read in pieces when they are needed."""
        if isinstance(self.bytes, UnreadableBytes):
            raise self.bytes.reason
        if self.dtype.is_complex:
            return self._in_pairs().source()
        if self.nbytes > WHOLE and self.stride is not None:
            return self._in_file_order().source()
        if self.nbytes <= WHOLE:
            return MemorySource(self.load(), self.shape, self._type_name())
        return FileSource(self, self._handy_shape(), self._type_name())

    def _in_pairs(self) -> StoredTensor:
        """Complex values as a last axis of two: the same bytes, the real part first."""
        stride = None if self.stride is None else (*(2 * step for step in self.stride), 1)
        return replace(
            self, shape=(*self.shape, 2), dtype=self.dtype.to_real(), stride=stride,
            stored_as=self._type_name(),
        )  # fmt: skip

    def _in_file_order(self) -> StoredTensor:
        """A large transposed tensor with its axes as they lie in the file; one with gaps is refused."""
        assert self.stride is not None
        order = sorted(range(len(self.shape)), key=lambda axis: -self.stride[axis])  # type: ignore[index]
        shape = tuple(self.shape[axis] for axis in order)
        steps = tuple(self.stride[axis] for axis in order)
        if not are_without_gaps(shape, steps):
            raise InputError(
                f"{self.path}: {self.name}", Text(
                    f"strides {self.stride} over {self.count:,} values", f"步长 {self.stride}，{self.count:,} 个数值"),
                Text("a contiguous tensor of this size", "该大小的连续张量"),
                Text("save tensor.contiguous()", "请保存 tensor.contiguous()"),
            )  # fmt: skip
        return replace(self, shape=shape, stride=None)

    def _handy_shape(self) -> tuple[int, ...]:
        """The shape, with leading axes joined where one index of the first would be too large."""
        most = WHOLE // self.dtype.itemsize
        shape = self.shape
        if len(shape) > 2 and self.count // max(shape[0], 1) > most:
            shape = (self.count // shape[-1], shape[-1])
        return shape if self.count // max(shape[0], 1) <= most else (self.count,)

    def _type_name(self) -> str:
        return self.stored_as or str(self.dtype).removeprefix("torch.")

    def load(self) -> torch.Tensor:
        """The whole tensor."""
        if self.stride is None:
            return self.values(0, self.count).reshape(self.shape)
        reach = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        if reach * self.dtype.itemsize > 2 * WHOLE:  # twice that is in memory while it is read
            raise InputError(
                f"{self.path}: {self.name}", Text(
                    f"strides {self.stride} over {reach:,} values", f"步长 {self.stride}，跨越 {reach:,} 个数值"),
                Text("a contiguous tensor of this size", "该大小的连续张量"),
                Text("save tensor.contiguous()", "请保存 tensor.contiguous()"),
            )  # fmt: skip
        flat = self.values(0, reach if self.count else 0)
        return flat.as_strided(self.shape, self.stride) if self.count else flat.reshape(self.shape)

    def values(self, start: int, count: int) -> torch.Tensor:
        """A run of values in the order of the file."""
        size = self.dtype.itemsize
        if not count:
            return torch.empty(0, dtype=self.dtype)
        data = bytearray(self.bytes.read(start * size, count * size))
        if self.swapped:
            swapped = np.frombuffer(data, f"u{size}").byteswap()
            data = bytearray(swapped.tobytes())
        return torch.frombuffer(data, dtype=self.dtype)


@dataclass(frozen=True)
class FileSource:
    """A tensor too large to load, read in pieces."""

    stored: StoredTensor
    shape: tuple[int, ...]
    dtype: str
    notes: tuple[Text, ...] = (
        Text(
            "read from the file in pieces; axes were compared on a sample",
            "分块读取文件；各轴按抽样比较",
        ),
    )

    @property
    def pattern_dtype(self) -> torch.dtype | None:
        kind = self.stored.dtype
        return kind if kind in (torch.float16, torch.bfloat16) else None

    def chunks(self) -> Iterator[NDArray[np.float32] | NDArray[np.uint16]]:
        for start in range(0, self.stored.count, CHUNK):
            piece = self.stored.values(start, min(CHUNK, self.stored.count - start))
            if self.pattern_dtype is not None:
                yield piece.view(torch.uint16).numpy()
            else:
                yield as_fp32(piece).numpy()

    def sample_values(self, count: int) -> torch.Tensor:
        """Runs of neighbours from everywhere: single values would be as many reads of the disk."""
        each = max(1, count // _RUNS)
        starts = np.linspace(0, self.stored.count - each, _RUNS).astype(np.int64)
        return torch.cat([plain(self.stored.values(int(start), each)) for start in starts])

    def sample_rows(self, count: int, width: int) -> torch.Tensor:
        if len(self.shape) == 1:
            return self.sample_values(count).reshape(_RUNS, -1)
        columns = self.shape[-1]
        rows = self.stored.count // columns
        chosen = chosen_rows(rows, min(columns, width), count)
        places = range(rows) if chosen is None else chosen
        kept = min(columns, width)
        return torch.stack([plain(self.stored.values(int(row) * columns, kept)) for row in places])

    def sample_grid(self, count: int) -> torch.Tensor:
        if len(self.shape) == 1:
            return self.sample_values(count)
        steps = grid_steps(self.shape, count)
        inner = tuple(slice(None, None, step) for step in steps[1:])
        return torch.stack([self._first(i)[inner] for i in range(0, self.shape[0], steps[0])])

    def _first(self, index: int) -> torch.Tensor:
        """One index of the first axis."""
        each = self.stored.count // self.shape[0]
        return plain(self.stored.values(index * each, each)).reshape(self.shape[1:])

    def one_index(self, axis: int, index: int, count: int) -> torch.Tensor:
        if axis == 0:
            part = self._first(index)
            steps = grid_steps(tuple(part.shape), max(count, 1))
            return part[tuple(slice(None, None, step) for step in steps)].reshape(-1)
        step = max(1, self.shape[0] // 64)
        parts = [self._first(i).select(axis - 1, index) for i in range(0, self.shape[0], step)]
        return torch.stack(parts).reshape(-1)

    def slabs(self, count: int) -> Iterator[tuple[int, torch.Tensor]]:
        each = max(self.stored.count // self.shape[0], 1)
        step = max(1, count // each)
        for start in range(0, self.shape[0], step):
            rows = min(step, self.shape[0] - start)
            values = self.stored.values(start * each, rows * each)
            yield start, plain(values).reshape(rows, *self.shape[1:])


def are_without_gaps(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """The strides are those of a row-by-row tensor; of an axis of length 1 any will do."""
    step = 1
    for length, have in zip(reversed(shape), reversed(stride), strict=True):
        if have != step and length != 1:
            return False
        step *= length
    return True


def damaged(path: Path, what: Text | str) -> InputError:
    return InputError(
        str(path), what, Text("a whole, well-formed file", "完整且格式正确的文件"),
        Text("download or save it again", "请重新下载或保存"),
    )  # fmt: skip


def truncated(path: Path) -> InputError:
    return damaged(
        path, Text("a file that ends before its data does", "数据不完整、提前结束的文件")
    )


_MOST_TENSORS = 150_000
"""Published checkpoints have up to 92,000 (DeepSeek-V3: every expert of every layer, and its scales)."""


def check_count(path: Path, count: int) -> None:
    """A file that names tensors without end is refused before any of them is looked at."""
    if count > _MOST_TENSORS:
        raise InputError(
            str(path),
            Text(f"{count:,} tensors", f"{count:,} 个张量"),
            Text(f"at most {_MOST_TENSORS:,}", f"最多 {_MOST_TENSORS:,} 个"),
            Text("pass one shard of the checkpoint", "请传入检查点的一个分片"),
        )
