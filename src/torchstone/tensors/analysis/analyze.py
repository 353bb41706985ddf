"""`analyze_tensor`: one tensor, all formats, the axis that loses, and what helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchstone.core.errors import UsageError
from torchstone.core.report import Report
from torchstone.core.text import Text, locale_lang
from torchstone.runtime.number_formats import NumberFormat
from torchstone.tensors.analysis.accept import accept_tensor
from torchstone.tensors.analysis.axes import (
    DimStats,
    absmax_ratio,
    axis_stats,
    dim_ratio,
    find_axis,
)
from torchstone.tensors.analysis.by_format import figures_by_format
from torchstone.tensors.analysis.distribution import Distribution, read_distribution
from torchstone.tensors.analysis.figures import Figures
from torchstone.tensors.analysis.in_full import figures_in_full
from torchstone.tensors.analysis.reductions import (
    Pair,
    Reduction,
    add_in_format,
    along_axis,
    measure_reductions,
    share_lost,
)
from torchstone.tensors.analysis.remedies import (
    Remedy,
    flush_remedy,
    granularity_remedy,
    imbalance_remedies,
)
from torchstone.tensors.analysis.report import tensor_report
from torchstone.tensors.analysis.result import Contents, TensorReport
from torchstone.tensors.analysis.risk import HARMLESS, Risk, judge_contents, judge_imbalance
from torchstone.tensors.analysis.source import Source
from torchstone.tensors.analysis.what_if import what_if
from torchstone.tensors.formats import GRANULARITIES, Format, all_formats, find_formats
from torchstone.tensors.one_thread import one_thread

_ROWS = 1 << 15
"""Values in whole rows on which granularities are compared: 60 combinations take half a second."""
_PIECE = 512
_FEW = 16
"""Rows that are looked at even where they are long."""
_ROWS_MOST = 1 << 19
_ROWS_EXACT = 1 << 24
_GRID = 1 << 16
_POSITIONS = 1024
_EMPTY = Report("tensor")


def analyze_tensor(
    tensor: object,
    name: str = "tensor",
    *,
    axis: int | None = None,
    formats: Sequence[str] | None = None,
    granularities: Sequence[str] | None = None,
    exact: bool = False,
    lang: str = "",
) -> TensorReport:
    """What a tensor's values lose in low precision, which axis is unbalanced, and what helps.

    `axis` is found when it is not given. `formats` and `granularities` limit what is tried. With
    `exact`, errors that are otherwise estimated or sampled are computed from every value.
    """
    source = accept_tensor(tensor, name)
    chosen = find_formats(formats)
    kinds = tuple(granularities) if granularities is not None else GRANULARITIES
    return analyze_source(source, name, axis, chosen, kinds, exact, lang or locale_lang())


def analyze_source(
    source: Source,
    name: str,
    axis: int | None,
    formats: tuple[Format, ...],
    granularities: tuple[str, ...],
    exact: bool,
    lang: str,
) -> TensorReport:
    """The same for a tensor that may lie in a file."""
    with one_thread():
        return _analyze(source, name, axis, formats, granularities, exact, lang)


def _analyze(
    source: Source,
    name: str,
    axis: int | None,
    formats: tuple[Format, ...],
    granularities: tuple[str, ...],
    exact: bool,
    lang: str,
) -> TensorReport:
    distribution = read_distribution(source)
    rows = _sample_rows(source, granularities, exact)
    by_format = figures_by_format(distribution, formats, rows)
    if exact and not distribution.exact:
        by_format = figures_in_full(distribution, formats, by_format)
    axes = _look_along_axis(distribution, name, axis, formats)
    loss_scale = flush_remedy(distribution)
    remedies = _all_remedies(axes, loss_scale, rows, distribution)
    risks = _all_risks(distribution, by_format, axes, loss_scale)
    tried = what_if(rows, formats, granularities, distribution, by_format)
    worst = min(risks, key=lambda risk: risk.severity.rank, default=None)
    found = TensorReport(
        name=name, shape=source.shape, dtype=source.dtype, axis=axes.axis,
        dim_stats=axes.stats, dim_ratio=dim_ratio(axes.stats),
        absmax_ratio=absmax_ratio(axes.stats), small_index_lost=axes.lost,
        risk_level=worst.severity.value if worst else "LOW",
        suggestions=worst.remedy if worst else HARMLESS,
        contents=_contents(distribution), formats=by_format, reductions=axes.reductions,
        remedies=remedies, what_if=tried, notes=source.notes, report=_EMPTY, lang=lang,
    )  # fmt: skip
    return tensor_report(found, risks)


def _sample_rows(source: Source, granularities: tuple[str, ...], exact: bool) -> torch.Tensor:
    """Whole rows where a scale spans a row or a column; else pieces of more rows."""
    if exact:
        return source.sample_rows(_ROWS_EXACT, _ROWS_EXACT)
    if not {"row", "column", "128x128"} & set(granularities):
        return source.sample_rows(_ROWS // 2, _PIECE)
    columns = source.shape[-1] if source.shape else 1
    return source.sample_rows(max(_ROWS, min(_FEW * columns, _ROWS_MOST)), _ROWS_MOST)


@dataclass(frozen=True)
class _AlongAxis:
    """What was seen along the analysed axis."""

    axis: int | None
    stats: DimStats
    pair: Pair
    lost: float
    reductions: tuple[Reduction, ...] = ()
    remedies: tuple[Remedy, ...] = ()


def _look_along_axis(
    distribution: Distribution, name: str, axis: int | None, formats: tuple[Format, ...]
) -> _AlongAxis:
    source = distribution.source
    grid = source.sample_grid(_GRID)
    axis = _checked_axis(axis, source.shape, name)
    axis = find_axis(grid) if axis is None else axis
    if axis is None or not grid.numel():
        return _AlongAxis(None, _whole_stats(grid), Pair(0, 0), 0.0)
    stats = axis_stats(source, axis, not distribution.nans + distribution.infinities)
    size = np.where(np.isfinite(stats.absmax), stats.absmax, 0.0)
    used = np.flatnonzero(size)
    if len(used) < 2:
        return _AlongAxis(axis, stats, Pair(0, 0), 0.0)
    pair = Pair(int(size.argmax()), _small_index(size, used))
    count = max(grid.numel() // grid.shape[axis], _POSITIONS)
    # both thinned out in the same way: values of one position stand side by side
    large, small = (source.one_index(axis, index, count) for index in (pair.large, pair.small))
    lost = max(
        (share_lost(large, small, add_in_format(kind)) for kind in _holding(large, small)),
        default=0.0,
    )
    return _AlongAxis(
        axis, stats, pair, lost, measure_reductions(along_axis(grid, axis), formats),
        imbalance_remedies(large, small),
    )  # fmt: skip


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


def _small_index(size: np.ndarray, used: np.ndarray) -> int:
    """The smallest index; of many the one at 5 %, because a few dead channels are no imbalance."""
    rising = used[np.argsort(size[used], kind="stable")]
    return int(rising[int(0.05 * len(rising))])


def _checked_axis(axis: Any, shape: tuple[int, ...], name: str) -> int | None:
    if axis is None:
        return None
    if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        raise UsageError(
            name, f"axis {axis!r} of a tensor of shape {shape}",
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


def _all_remedies(
    axes: _AlongAxis, loss_scale: Remedy | None, rows: torch.Tensor, distribution: Distribution
) -> tuple[Remedy, ...]:
    known = all_formats()
    found = [
        granularity_remedy(rows, known[name], distribution.largest) for name in ("e4m3", "int8")
    ]
    return (*([loss_scale] if loss_scale else []), *axes.remedies, *(r for r in found if r))


def _all_risks(
    distribution: Distribution,
    by_format: tuple[Figures, ...],
    axes: _AlongAxis,
    loss_scale: Remedy | None,
) -> list[Risk]:
    risks = judge_contents(distribution, by_format, loss_scale)
    if axes.axis is not None:
        size = axes.stats.absmax
        ratio = float(size[axes.pair.large] / size[axes.pair.small]) if axes.lost else 1.0
        found = judge_imbalance(axes.lost, ratio, axes.axis, axes.pair, axes.remedies)
        risks += [found] if found else []
    return risks


def _contents(distribution: Distribution) -> Contents:
    exponents, counts = distribution.exponent_counts()
    return Contents(
        distribution.total, distribution.zeros, distribution.nans, distribution.infinities,
        distribution.smallest, distribution.median, distribution.largest,
        dict(zip(exponents.tolist(), counts.tolist(), strict=True)), distribution.holds_16_bits,
    )  # fmt: skip
