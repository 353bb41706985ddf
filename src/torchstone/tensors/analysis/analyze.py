"""`analyze_tensor`: one tensor, all formats, the axis that loses, and what helps."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from torchstone.core.report import Report
from torchstone.core.text import locale_lang
from torchstone.tensors.analysis.errors.axes import (
    absmax_ratio,
    dim_ratio,
)
from torchstone.tensors.analysis.errors.by_format import figures_by_format
from torchstone.tensors.analysis.errors.imbalance import look_along_axis
from torchstone.tensors.analysis.errors.in_full import figures_in_full
from torchstone.tensors.analysis.errors.reductions import (
    along_axis,
    measure_reductions,
)
from torchstone.tensors.analysis.errors.what_if import what_if
from torchstone.tensors.analysis.remedies import (
    Remedy,
    granularity_remedy,
)
from torchstone.tensors.analysis.report import tensor_report
from torchstone.tensors.analysis.result import Contents, TensorReport
from torchstone.tensors.analysis.risk import HARMLESS, judge_tensor, risk_level
from torchstone.tensors.analysis.values.accept import accept_tensor
from torchstone.tensors.analysis.values.distribution import Distribution, read_distribution
from torchstone.tensors.analysis.values.source import Source
from torchstone.tensors.formats import GRANULARITIES, Format, all_formats, find_formats
from torchstone.tensors.names import names_given
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
    formats: str | Sequence[str] | None = None,
    granularities: str | Sequence[str] | None = None,
    exact: bool = False,
    lang: str = "",
) -> TensorReport:
    """What a tensor's values lose in low precision, which axis is unbalanced, and what helps.

    `axis` is found when it is not given. `formats` and `granularities` limit what is tried. With
    `exact`, errors that are otherwise estimated or sampled are computed from every value.
    """
    source = accept_tensor(tensor, name)
    chosen = find_formats(names_given("analyze_tensor: formats", formats))
    kinds = names_given("analyze_tensor: granularities", granularities) or GRANULARITIES
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
    axes = look_along_axis(distribution, name, axis)
    risks, helpful = judge_tensor(distribution, by_format, axes)
    remedies = (*helpful, *_finer_scales(rows, distribution))
    reductions = (
        ()
        if axes.pair is None
        else measure_reductions(along_axis(axes.grid, axes.pair.axis), formats)
    )
    tried = what_if(rows, formats, granularities, distribution, by_format)
    worst = min(risks, key=lambda risk: risk.severity.rank, default=None)
    found = TensorReport(
        name=name, shape=source.shape, dtype=source.dtype, axis=axes.axis,
        dim_stats=axes.stats, dim_ratio=dim_ratio(axes.stats),
        absmax_ratio=absmax_ratio(axes.stats), small_index_lost=axes.lost,
        risk_level=risk_level(risks),
        suggestions=worst.remedy if worst else HARMLESS,
        contents=_contents(distribution), formats=by_format, reductions=reductions,
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


def _finer_scales(rows: torch.Tensor, distribution: Distribution) -> tuple[Remedy, ...]:
    known = all_formats()
    found = [
        granularity_remedy(rows, known[name], distribution.largest) for name in ("e4m3", "int8")
    ]
    return tuple(remedy for remedy in found if remedy)


def _contents(distribution: Distribution) -> Contents:
    exponents, counts = distribution.exponent_counts()
    return Contents(
        distribution.total, distribution.zeros, distribution.nans, distribution.infinities,
        distribution.smallest, distribution.median, distribution.largest,
        dict(zip(exponents.tolist(), counts.tolist(), strict=True)), distribution.holds_16_bits,
    )  # fmt: skip
