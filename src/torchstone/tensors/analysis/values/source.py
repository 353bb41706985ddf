"""A tensor of any kind as plain values: in chunks of bounded size, and in samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.core.text import Text

CHUNK = 1 << 22
"""Values that are converted at a time: 16 MiB of fp32."""
_SMALLEST = 2.0**-149
_LARGEST = 3.4028234663852886e38
_SEED = 0x70C5


class Source(Protocol):
    """What the analysis needs of a tensor, wherever it lies."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def notes(self) -> tuple[Text, ...]: ...
    def chunks(self) -> Iterator[NDArray[np.float32] | NDArray[np.uint16]]:
        """All values as fp32, or as patterns where `pattern_dtype` is set."""
        ...

    @property
    def pattern_dtype(self) -> torch.dtype | None:
        """The 16-bit type whose patterns `chunks` gives."""
        ...

    def sample_values(self, count: int) -> torch.Tensor:
        """About so many single values from everywhere."""
        ...

    def sample_rows(self, count: int, width: int) -> torch.Tensor:
        """Rows (along the last axis) of about `count` values, cut at `width`, as a matrix."""
        ...

    def sample_grid(self, count: int) -> torch.Tensor:
        """Every axis thinned out evenly to about so many values."""
        ...

    def one_index(self, axis: int, index: int, count: int) -> torch.Tensor:
        """About so many values of one index of an axis."""
        ...

    def slabs(self, count: int) -> Iterator[tuple[int, torch.Tensor]]:
        """All values in slices along the first axis of about so many values each."""
        ...


def count_of(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


@dataclass(frozen=True)
class MemorySource:
    """A strided tensor in memory, on any device."""

    tensor: torch.Tensor
    shape: tuple[int, ...]
    dtype: str
    notes: tuple[Text, ...] = ()

    @property
    def pattern_dtype(self) -> torch.dtype | None:
        kind = self.tensor.dtype
        return kind if kind in (torch.float16, torch.bfloat16) else None

    def chunks(self) -> Iterator[NDArray[np.float32] | NDArray[np.uint16]]:
        for piece in pieces(self.tensor, CHUNK):
            if self.pattern_dtype is not None:
                patterns = piece.to("cpu").contiguous().view(torch.uint16)
                yield patterns.numpy().reshape(-1)
            else:
                yield as_fp32(piece).numpy().reshape(-1)

    def sample_values(self, count: int) -> torch.Tensor:
        tensor = self.tensor
        if tensor.numel() <= count:
            return plain(tensor).reshape(-1)
        places = spread_positions(tensor.numel(), count)
        if tensor.is_contiguous():
            return plain(tensor.reshape(-1)[torch.from_numpy(places).to(tensor.device)])
        where = np.unravel_index(places, tuple(tensor.shape))
        return plain(tensor[tuple(torch.from_numpy(w).to(tensor.device) for w in where)])

    def sample_rows(self, count: int, width: int) -> torch.Tensor:
        tensor = self.tensor
        if tensor.dim() == 0 or not tensor.numel():
            return plain(tensor).reshape(-1, 1)
        if tensor.dim() == 1 and tensor.numel() > width:  # a vector has its rows one after another
            tensor = tensor[: tensor.numel() // width * width].unflatten(0, (-1, width))
        tensor = tensor[..., :width]
        lead = tuple(tensor.shape[:-1])
        wanted = chosen_rows(math.prod(lead), tensor.shape[-1], count)
        if wanted is None:
            return plain(tensor).reshape(-1, tensor.shape[-1])
        where = np.unravel_index(wanted, lead)
        return plain(tensor[tuple(torch.from_numpy(w).to(tensor.device) for w in where)])

    def sample_grid(self, count: int) -> torch.Tensor:
        steps = grid_steps(tuple(self.tensor.shape), count)
        return plain(self.tensor[tuple(slice(None, None, step) for step in steps)])

    def one_index(self, axis: int, index: int, count: int) -> torch.Tensor:
        part = self.tensor.select(axis, index)
        steps = grid_steps(tuple(part.shape), max(count, 1))
        return plain(part[tuple(slice(None, None, step) for step in steps)]).reshape(-1)

    def slabs(self, count: int) -> Iterator[tuple[int, torch.Tensor]]:
        tensor = self.tensor
        step = max(1, count // max(tensor.numel() // tensor.shape[0], 1))
        for start in range(0, tensor.shape[0], step):
            yield start, plain(tensor[start : start + step])


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """On the CPU, contiguous, as fp32 (fp64 stays fp64)."""
    wide = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    return tensor.to("cpu", wide).contiguous()


def as_fp32(tensor: torch.Tensor) -> torch.Tensor:
    """On the CPU, contiguous, as fp32; what fp32 cannot hold keeps being nonzero and finite."""
    if tensor.dtype != torch.float64:
        return tensor.to("cpu", torch.float32).contiguous()
    wide = tensor.to("cpu")
    size = wide.abs()
    kept = torch.where(size.isfinite() & (size > 0), size.clamp(_SMALLEST, _LARGEST), size)
    return torch.copysign(kept, wide).to(torch.float32).contiguous()


def pieces(tensor: torch.Tensor, most: int) -> Iterator[torch.Tensor]:
    """The tensor in parts of at most so many values, without a copy of the whole."""
    if tensor.numel() <= most:
        yield tensor
    elif tensor.is_contiguous():
        flat = tensor.reshape(-1)
        if tensor.device.type == "cpu" and tensor.dtype == torch.float32:
            yield flat  # nothing is converted: one part will do
            return
        for start in range(0, flat.numel(), most):
            yield flat[start : start + most]
    else:
        step = max(1, most // max(1, tensor.numel() // tensor.shape[0]))
        for start in range(0, tensor.shape[0], step):
            part = tensor[start : start + step]
            yield from pieces(part[0], most) if part.numel() > most else (part,)


def spread_positions(total: int, count: int) -> NDArray[np.int64]:
    """Positions from everywhere, one out of each of `count` equal parts, the same on every run.

    Shifted at random within its part: a fixed stride would see the same few columns again and again.
    """
    edges = np.linspace(0, total, count + 1).astype(np.int64)
    shift = np.random.default_rng(_SEED).random(count) * (edges[1:] - edges[:-1])
    return np.minimum(edges[:-1] + shift.astype(np.int64), total - 1)


BAND = 128
"""Rows that are taken together, so that 128 × 128 tiles are whole."""


def chosen_rows(rows: int, columns: int, count: int) -> NDArray[np.int64] | None:
    """Which rows make a sample of about `count` values: evenly spread bands; None for all."""
    wanted = max(1, count // max(columns, 1))
    if wanted >= rows:
        return None
    bands = max(1, wanted // BAND)
    height = min(BAND, wanted)
    starts = np.linspace(0, rows - height, bands).astype(np.int64)
    chosen = (starts[:, None] + np.arange(height)[None, :]).reshape(-1)
    return np.unique(chosen)


def grid_steps(shape: tuple[int, ...], count: int) -> list[int]:
    """The longest axes are thinned out first, so that short ones (coordinates, heads) stay whole."""
    kept = list(shape)
    while math.prod(kept) > count:
        longest = max(range(len(kept)), key=kept.__getitem__)
        kept[longest] = (kept[longest] + 1) // 2
    return [max(1, -(-size // max(few, 1))) for size, few in zip(shape, kept, strict=True)]
