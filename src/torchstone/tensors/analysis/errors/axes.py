"""Which axis of a tensor is unbalanced, and the statistics of each index along it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.tensors.analysis.values.passes import axis_extremes
from torchstone.tensors.analysis.values.source import Source

_SLAB = 1 << 22  # values at a time
_OWN_SHARE = 0.01
"""A side (positive or negative) of an index counts only if it reaches this share of the index's own
magnitude: one stray -1e-9 in a positive column would otherwise make a ratio of 1e9."""


class DimStats(Mapping[int, Mapping[str, float]]):
    """Minimum, maximum, mean and largest magnitude of every index of one axis."""

    def __init__(
        self,
        minimum: NDArray[np.float64],
        maximum: NDArray[np.float64],
        mean: NDArray[np.float64],
    ) -> None:
        self.minimum, self.maximum, self.mean = minimum, maximum, mean

    @property
    def absmax(self) -> NDArray[np.float64]:
        return np.maximum(np.abs(self.minimum), np.abs(self.maximum))

    def __getitem__(self, index: Any) -> Mapping[str, float]:
        if not isinstance(index, int | np.integer) or not 0 <= index < len(self.minimum):
            raise KeyError(index)
        return {
            "min": float(self.minimum[index]),
            "max": float(self.maximum[index]),
            "mean": float(self.mean[index]),
            "absmax": float(self.absmax[index]),
        }

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.minimum)))

    def __len__(self) -> int:
        return len(self.minimum)

    def __repr__(self) -> str:
        shown = ", ".join(f"{i}: {dict(self[i])}" for i in range(min(len(self), 4)))
        more = f", … {len(self) - 4} more" if len(self) > 4 else ""
        return f"{{{shown}{more}}}"


def imbalance_octaves(values: torch.Tensor, axis: int) -> float:
    """How far apart the typical magnitudes of an axis's indices are: their spread in octaves.

    The variance of the mean log2 magnitude between indices, less what indices would differ by chance
    (the variance within, over the number of values): without that correction a thousand rows of two
    values each would look more unbalanced than the two columns that make them so.
    """
    moved = values.movedim(axis, 0).reshape(values.shape[axis], -1).double().abs()
    good = (moved > 0) & moved.isfinite()
    counts = good.sum(dim=1)
    kept = counts > 0
    if int(kept.sum()) < 2:
        return 0.0
    logs = torch.where(good, moved.clamp(min=1e-320).log2(), 0.0)
    means = logs.sum(1)[kept] / counts[kept]
    within = (
        torch.where(good, logs - (logs.sum(1) / counts.clamp(min=1))[:, None], 0.0) ** 2
    ).sum()
    freedom = max(int(counts.sum() - kept.sum()), 1)
    chance = float(within) / freedom * float((1.0 / counts[kept]).mean())
    return math.sqrt(max(float(means.var(unbiased=True)) - chance, 0.0))


def find_axis(values: torch.Tensor) -> int | None:
    """The most unbalanced axis; None where there is no axis to compare along."""
    candidates = [axis for axis in range(values.dim()) if values.shape[axis] > 1]
    if values.dim() < 2 or not candidates:
        return None
    return max(candidates, key=lambda axis: (imbalance_octaves(values, axis), axis))


def axis_stats(source: Source, axis: int, all_finite: bool) -> DimStats:
    """Statistics of every index, from all values, slab by slab; NaN and infinities are left out."""
    size = source.shape[axis]
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    total, count = np.zeros(size), np.zeros(size)
    for start, slab in source.slabs(_SLAB):
        place = slice(start, start + slab.shape[0]) if axis == 0 else slice(None)
        least, most, sums, counts = _slab_stats(slab, axis, all_finite)
        low[place] = np.minimum(low[place], least)
        high[place] = np.maximum(high[place], most)
        total[place] += sums
        count[place] += counts
    empty = count == 0
    low[empty], high[empty] = np.nan, np.nan
    return DimStats(low, high, np.where(empty, np.nan, total / np.maximum(count, 1)))


_Column = NDArray[np.float64]


def _slab_stats(
    slab: torch.Tensor, axis: int, all_finite: bool
) -> tuple[_Column, _Column, _Column, _Column]:
    """Minimum, maximum, sum and count of every index of one slab."""
    each = np.full(slab.shape[axis], slab.numel() / slab.shape[axis])
    if all_finite and slab.dtype == torch.float32:
        found = axis_extremes(slab.numpy(), axis)
        if found is not None:
            return (*found, each)
    others = [other for other in range(slab.dim()) if other != axis]
    finite = slab.isfinite()
    return (
        torch.where(finite, slab, torch.inf).amin(dim=others).double().numpy(),
        torch.where(finite, slab, -torch.inf).amax(dim=others).double().numpy(),
        torch.where(finite, slab, 0.0).sum(dim=others, dtype=torch.float64).numpy(),
        finite.sum(dim=others).double().numpy(),
    )


def dim_ratio(stats: DimStats) -> float:
    """The largest over the smallest of the indices' extremes on the same side.

    For each side (positive, negative) the largest extreme of any index over the smallest; the larger of
    the two sides. 1200 over 0.8 is 1500.
    """
    ratios = [_side_ratio(side, stats.absmax) for side in (stats.maximum, -stats.minimum)]
    return max(ratios, default=1.0)


def _side_ratio(extremes: NDArray[np.float64], absmax: NDArray[np.float64]) -> float:
    counted = np.isfinite(extremes) & (extremes > 0) & (extremes >= _OWN_SHARE * absmax)
    if np.count_nonzero(counted) < 2:
        return 1.0
    return float(extremes[counted].max() / extremes[counted].min())


def absmax_ratio(stats: DimStats) -> float:
    """The largest over the smallest magnitude of the indices that hold anything."""
    size = stats.absmax
    used = size[np.isfinite(size) & (size > 0)]
    return float(used.max() / used.min()) if len(used) > 1 else 1.0
