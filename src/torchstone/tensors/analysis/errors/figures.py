"""What a format does to a tensor: shares that are lost, and errors of what is left."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.runtime.number_formats import IntegerFormat
from torchstone.tensors.formats import Format, quantize

_DB_CAP = 400.0  # of an exact copy: fp64 itself has no more than 320 dB


@dataclass(frozen=True, slots=True)
class Worst:
    """The row, column or tile that suffers most."""

    place: int
    sqnr_db: float
    flushed: float


@dataclass(frozen=True, slots=True)
class Figures:
    """A tensor through one format; shares are 0 … 1 of the nonzero values (overflow: of all)."""

    format: str
    granularity: str
    scale: str
    flushed: float
    subnormal: float
    overflow: float
    median_error: float
    """Median relative error of the nonzero values."""
    largest_error: float
    sqnr_db: float
    cosine: float
    worst_row: Worst | None
    worst_column: Worst | None
    worst_tile: Worst | None
    how: Text
    spread_db: float | None = None
    """Two standard errors of `sqnr_db` where it was measured on a sample."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of values against what was read back."""

    median: float
    largest: float
    sqnr_db: float
    cosine: float
    spread_db: float | None = None


def decibels(signal: float, noise: float) -> float:
    if noise <= 0 or signal <= 0:
        return _DB_CAP if noise <= 0 else -_DB_CAP
    return min(_DB_CAP, 10 * math.log10(signal / noise))


def weighted_errors(
    values: NDArray[np.float64],
    back: NDArray[np.float64],
    counts: NDArray[np.int64],
    width: NDArray[np.float64] | None = None,
    sampled_from: int = 0,
) -> Errors:
    """Errors of nonzero magnitudes with counts; `width` is that of bins around the values."""
    if not len(values):
        return Errors(0.0, 0.0, _DB_CAP, 1.0)
    # scaled by the largest, so that squares of huge and tiny values stay within fp64
    top = float(values.max())
    x, y = values / top, back / top
    error = np.abs(x - y)
    square = error**2
    if width is not None:  # values spread evenly over their bin add its variance
        square = square + np.where(back > 0, (width / top) ** 2 / 12, 0.0)
    signal, noise = float((counts * x**2).sum()), float((counts * square).sum())
    product, other = float((counts * x * y).sum()), float((counts * y**2).sum())
    cosine = product / math.sqrt(signal * other) if other > 0 else 0.0
    relative = np.divide(error, x, out=np.ones_like(x), where=x > 0)  # x / top may underflow
    spread = None
    if sampled_from > len(values) and noise > 0:
        spread = _spread_db(counts * square) if len(values) > 1 else None
    return Errors(
        _weighted_median(relative, counts), float(relative.max()), decibels(signal, noise),
        min(cosine, 1.0), spread,
    )  # fmt: skip


def _spread_db(noise: NDArray[np.float64]) -> float:
    """Two standard errors of a sum of sampled squares, in decibels."""
    relative = 2 * float(noise.std()) / math.sqrt(len(noise)) / float(noise.mean())
    return 10 * math.log10(1 + relative)


def _weighted_median(values: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    """The value in the middle, without sorting them all: by the upper bits first, then within one bin."""
    bins = values.astype(np.float32).view(np.uint32) >> 16
    reached = np.cumsum(np.bincount(bins, counts))
    middle = int(np.searchsorted(reached, reached[-1] / 2))
    inside = np.flatnonzero(bins == middle)
    order = inside[np.argsort(values[inside])]
    before = reached[middle - 1] if middle else 0.0
    return float(values[order[np.searchsorted(before + np.cumsum(counts[order]), reached[-1] / 2)]])


def measure_matrix(
    matrix: torch.Tensor,
    format: Format,
    granularity: str,
    scale: str,
    how: Text,
    tensor_largest: float | None = None,
    sampled_from: int = 0,
) -> Figures:
    """The figures of a matrix by storing it in the format and reading it back."""
    made = quantize(matrix, format, granularity, scale, tensor_largest)
    finite = matrix.isfinite()
    over = finite & ~made.values.isfinite()
    x = torch.where(finite, matrix, 0.0).double()
    back = torch.where(finite & ~over, made.values, 0.0).double()
    back = torch.where(over, torch.sign(x) * format.element.largest, back)
    nonzero = x != 0
    flushed = nonzero & (made.stored == 0)
    sizes = x[nonzero].abs().numpy()
    signed = (back[nonzero] * torch.sign(x[nonzero])).numpy()
    errors = weighted_errors(
        sizes, signed, np.ones(len(sizes), np.int64), sampled_from=sampled_from
    )
    count = max(int(nonzero.sum()), 1)
    return Figures(
        format.name, granularity, scale, int(flushed.sum()) / count,
        _subnormal_count(made.scaled, nonzero & ~flushed, format) / count,
        int(_over_count(made.scaled, finite, format)) / max(matrix.numel(), 1),
        errors.median, errors.largest, errors.sqnr_db, errors.cosine,
        *_worst_parts(x, back, flushed), how, errors.spread_db,
    )  # fmt: skip


def worst_parts(
    matrix: torch.Tensor, format: Format, tensor_largest: float
) -> tuple[Worst | None, Worst | None, Worst | None]:
    """The worst row, column and tile under the format's usual scale."""
    made = quantize(matrix, format, None, None, tensor_largest)
    kept = matrix.isfinite() & made.values.isfinite()
    x = torch.where(kept, matrix, 0.0).double()
    back = torch.where(kept, made.values, 0.0).double()
    return _worst_parts(x, back, (x != 0) & (made.stored == 0))


def _subnormal_count(scaled: torch.Tensor, kept: torch.Tensor, format: Format) -> int:
    if isinstance(format.element, IntegerFormat):
        return 0
    return int((kept & (scaled.abs() < format.element.smallest_normal)).sum())


def _over_count(scaled: torch.Tensor, finite: torch.Tensor, format: Format) -> int:
    """Values beyond the range, clipped or infinite."""
    element = format.element
    if isinstance(element, IntegerFormat):
        return int((finite & (scaled.abs() > element.largest + 0.5)).sum())
    size = scaled.abs().double()
    over = (
        size >= element.overflow_from if element.overflows_at_tie else size > element.overflow_from
    )
    return int((finite & over).sum())


def _worst_parts(
    x: torch.Tensor, back: torch.Tensor, flushed: torch.Tensor
) -> tuple[Worst | None, Worst | None, Worst | None]:
    rows, columns = x.shape
    if rows * columns == 0:
        return None, None, None
    error = (x - back) ** 2
    power = x**2
    by_row = _worst(power.sum(1), error.sum(1), flushed.double().mean(1)) if rows > 1 else None
    by_column = (
        _worst(power.sum(0), error.sum(0), flushed.double().mean(0)) if columns > 1 else None
    )
    tile = 32
    if columns < tile:
        return by_row, by_column, None
    whole = columns // tile * tile

    def fold(values: torch.Tensor) -> torch.Tensor:
        return values[:, :whole].reshape(-1, tile).double()

    by_tile = _worst(fold(power).sum(1), fold(error).sum(1), fold(flushed).mean(1))
    return by_row, by_column, by_tile


def _worst(power: torch.Tensor, error: torch.Tensor, flushed: torch.Tensor) -> Worst | None:
    """The part with the largest share of error among those that hold anything."""
    ratio = torch.where(power > 0, error / power.clamp(min=1e-300), -1.0)
    place = int(ratio.argmax())
    if float(ratio[place]) < 0:
        return None
    return Worst(place, decibels(float(power[place]), float(error[place])), float(flushed[place]))
