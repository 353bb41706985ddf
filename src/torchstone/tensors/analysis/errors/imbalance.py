"""The indices of one axis that are furthest apart, and what a 16-bit sum loses of the small one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.runtime.number_formats import NumberFormat
from torchstone.tensors.analysis.errors.axes import DimStats, axis_stats, find_axis
from torchstone.tensors.analysis.errors.reductions import add_in_format, share_lost
from torchstone.tensors.analysis.values.distribution import Distribution
from torchstone.tensors.formats import Format, all_formats

_GRID = 1 << 16
_POSITIONS = 1024
_FEW_DEAD = 0.05
"""The small index of many is the one at 5 %, because a few dead channels are no imbalance."""


@dataclass(frozen=True)
class Pair:
    """The largest and a small index of an axis, with values that stand side by side."""

    axis: int
    large: int
    small: int
    large_values: torch.Tensor
    small_values: torch.Tensor
    lost: float
    """Share of the small index that a 16-bit sum with the large one loses, measured."""


@dataclass(frozen=True)
class AlongAxis:
    """What was seen along the analysed axis."""

    axis: int | None
    stats: DimStats
    grid: torch.Tensor
    pair: Pair | None = None
    """None where there are no two indices with values."""

    @property
    def lost(self) -> float:
        return self.pair.lost if self.pair else 0.0


def look_along_axis(distribution: Distribution, name: str, axis: int | None) -> AlongAxis:
    """Along the axis that is given, else along the most unbalanced one."""
    source = distribution.source
    grid = source.sample_grid(_GRID)
    axis = _checked_axis(axis, source.shape, name)
    axis = find_axis(grid) if axis is None else axis
    if axis is None or not grid.numel():
        return AlongAxis(None, _whole_stats(grid), grid)
    stats = axis_stats(source, axis, not distribution.nans + distribution.infinities)
    return AlongAxis(axis, stats, grid, _furthest_apart(distribution, axis, stats, grid))


def _furthest_apart(
    distribution: Distribution, axis: int, stats: DimStats, grid: torch.Tensor
) -> Pair | None:
    size = np.where(np.isfinite(stats.absmax), stats.absmax, 0.0)
    used = np.flatnonzero(size)
    if len(used) < 2:
        return None
    rising = used[np.argsort(size[used], kind="stable")]
    large, small = int(size.argmax()), int(rising[int(_FEW_DEAD * len(rising))])
    count = max(grid.numel() // grid.shape[axis], _POSITIONS)
    # both thinned out in the same way: values of one position stand side by side
    most, least = (distribution.source.one_index(axis, index, count) for index in (large, small))
    formats = _holding(most, least)
    lost = max((share_lost(most, least, add_in_format(kind)) for kind in formats), default=0.0)
    return Pair(axis, large, small, most, least, lost)


def _holding(large: torch.Tensor, small: torch.Tensor) -> list[Format]:
    """The 16-bit formats whose range holds both: what overflows or is flushed is no imbalance."""
    known = [all_formats()[name] for name in ("bf16", "fp16")]
    most, least = (
        float(part[part.isfinite()].abs().max()) if part.isfinite().any() else 0.0
        for part in (large, small)
    )
    return [
        item
        for item in known
        if isinstance(item.element, NumberFormat)
        and most + least <= item.element.largest
        and least >= item.element.smallest_normal
    ]


def _checked_axis(axis: Any, shape: tuple[int, ...], name: str) -> int | None:
    if axis is None:
        return None
    if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        raise UsageError(
            name, Text(
                f"axis {axis!r} of a tensor of shape {shape}", f"形状为 {shape} 的张量的第 {axis!r} 轴"),
            Text(f"an axis from {-len(shape)} to {len(shape) - 1}" if shape else "no axis",
                 f"{-len(shape)} 到 {len(shape) - 1} 之间的轴" if shape else "不指定轴"),
            Text("leave axis out to have it found", "省略 axis 则自动查找"),
        )  # fmt: skip
    return axis % len(shape)


def _whole_stats(values: torch.Tensor) -> DimStats:
    """Scalars and vectors have one entry: the whole."""
    finite = values[values.isfinite()].double() if values.numel() else values.reshape(-1)
    if not finite.numel():
        return DimStats(*(np.zeros(0) for _ in range(3)))
    return DimStats(*(np.array([float(f(finite))]) for f in (torch.min, torch.max, torch.mean)))
