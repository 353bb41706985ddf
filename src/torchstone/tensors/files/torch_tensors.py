"""A tensor that a `.pt` file describes, with its bytes found and checked; or the reason why it has none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.tensors.files.stored import (
    Bytes,
    StoredTensor,
    UnreadableBytes,
    are_without_gaps,
    damaged,
)
from torchstone.tensors.files.torch_records import (
    Quantizer,
    StorageRecord,
    TensorRecord,
    UnreadableRecord,
)

Find = Callable[[str, StorageRecord], tuple[Bytes, int]]
"""The bytes of a storage, and how many there are."""
_INTEGERS = {torch.qint8: np.int8, torch.quint8: np.uint8, torch.qint32: np.int32}
_MOST_SCALES = 1 << 24


def storages_of(record: TensorRecord | UnreadableRecord) -> Iterator[StorageRecord]:
    """The storages that a tensor needs: its own, and those of its scales."""
    if isinstance(record, TensorRecord):
        yield record.storage
        if record.quantizer is not None:
            for part in (record.quantizer.scale, record.quantizer.zero_point):
                yield from storages_of(part) if isinstance(part, TensorRecord) else ()


def stored_tensor(
    name: str, record: TensorRecord | UnreadableRecord, find: Find, path: Path, swapped: bool
) -> StoredTensor:
    """The tensor as the analysis reads it; what cannot be read keeps its name and says why."""
    if isinstance(record, UnreadableRecord):
        error = InputError(f"{path}: {name}", record.given, record.expected, record.todo)
        sizes = tuple(size for size in record.shape if type(size) is int)
        return StoredTensor(name, sizes, torch.float32, UnreadableBytes(error), path)
    data, size = find(name, record.storage)
    record = _without_repeats(record)
    values = size // record.dtype.itemsize
    _check_reach(name, record, values, path)
    data = OffsetBytes(data, record.offset * record.dtype.itemsize)
    stride = None if are_without_gaps(record.shape, record.stride) else record.stride
    made = StoredTensor(
        name, record.shape, record.dtype, data, path, record.stored_as, swapped, stride
    )
    if made.count > values:
        return replace(made, bytes=UnreadableBytes(_overlapping(made)))
    if record.quantizer is not None:
        return _dequantised(made, record.quantizer, record, find, swapped)
    return made


@dataclass(frozen=True)
class OffsetBytes:
    """What lies behind the first bytes."""

    data: Bytes
    start: int

    def read(self, offset: int, size: int) -> bytes:
        return self.data.read(self.start + offset, size)


def _without_repeats(record: TensorRecord) -> TensorRecord:
    """An expanded axis (stride 0) repeats the same values: one of them has the same shares and errors."""
    repeated = [step == 0 and length > 1 for length, step in zip(record.shape, record.stride, strict=True)]  # fmt: skip
    if not any(repeated) or not math.prod(record.shape):
        return record
    sizes = "×".join(map(str, record.shape))
    name = record.stored_as or str(record.dtype).removeprefix("torch.")
    shape = tuple(1 if gone else n for n, gone in zip(record.shape, repeated, strict=True))
    return replace(record, shape=shape, stored_as=f"{name} expanded to {sizes}")


def _check_reach(name: str, record: TensorRecord, values: int, path: Path) -> None:
    """The tensor lies within its storage."""
    reach = sum((n - 1) * s for n, s in zip(record.shape, record.stride, strict=True)) + 1
    if math.prod(record.shape) and record.offset + reach > values:
        raise damaged(
            path,
            Text(
                f"{name!r} of shape {record.shape} and stride {record.stride} over {values:,} values",
                f"{name!r}：形状 {record.shape}、步长 {record.stride}，存储仅 {values:,} 个数值",
            ),
        )


def _overlapping(made: StoredTensor) -> InputError:
    return InputError(
        f"{made.path}: {made.name}", Text(
            f"strides {made.stride} that read the same values many times",
            f"反复读取相同数值的步长 {made.stride}"),
        Text("a tensor of its own values", "数值不重叠的张量"),
        Text("save tensor.contiguous() if it is meant to be so large",
             "若确需如此大小，请保存 tensor.contiguous()"),
    )  # fmt: skip


@dataclass(frozen=True)
class _AffineBytes:
    """Quantised integers, as fp32 when they are read."""

    packed: Bytes
    kind: np.dtype
    scales: NDArray[np.float64]
    zero_points: NDArray[np.float64]
    step: int
    """Values from one index of the axis to the next."""

    def read(self, offset: int, size: int) -> bytes:
        first, last = offset // 4, -(-(offset + size) // 4)
        width = self.kind.itemsize
        raw = np.frombuffer(self.packed.read(first * width, (last - first) * width), self.kind)
        index = np.arange(first, last) // self.step % len(self.scales)
        values = ((raw - self.zero_points[index]) * self.scales[index]).astype(np.float32)
        return bytes(values.tobytes()[offset - 4 * first :][:size])


def _dequantised(
    made: StoredTensor, quantizer: Quantizer, record: TensorRecord, find: Find, swapped: bool
) -> StoredTensor:
    channels = made.shape[quantizer.axis] if 0 <= quantizer.axis < len(made.shape) else 1
    scales, zeros = (
        _numbers(part, made, find, swapped) for part in (quantizer.scale, quantizer.zero_point)
    )
    if not len(scales) == len(zeros) == channels:
        raise damaged(
            made.path,
            Text(
                f"{made.name!r} of shape {made.shape} with {len(scales)} scales",
                f"形状为 {made.shape} 的 {made.name!r} 有 {len(scales)} 个缩放因子",
            ),
        )
    kind = np.dtype(_INTEGERS[made.dtype]).newbyteorder(">" if swapped else "<")
    step = record.stride[quantizer.axis] if channels > 1 else 1
    data = _AffineBytes(made.bytes, kind, scales, zeros, max(step, 1))
    return replace(made, dtype=torch.float32, bytes=data, swapped=False)


def _numbers(
    part: float | TensorRecord, made: StoredTensor, find: Find, swapped: bool
) -> NDArray[np.float64]:
    if not isinstance(part, TensorRecord):
        return np.array([part], np.float64)
    stored = stored_tensor(f"{made.name} scales", part, find, made.path, swapped)
    if stored.count > _MOST_SCALES or stored.dtype.is_complex or part.quantizer is not None:
        raise damaged(
            made.path,
            Text(
                f"{made.name!r} with {stored.count:,} scales",
                f"{made.name!r} 有 {stored.count:,} 个缩放因子",
            ),
        )
    numbers: NDArray[np.float64] = stored.load().double().reshape(-1).numpy()
    return numbers
