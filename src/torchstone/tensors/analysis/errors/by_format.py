"""All formats from one distribution: shares counted exactly, errors from bins or from a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.runtime.number_formats import IntegerFormat
from torchstone.tensors.analysis.errors.figures import (
    Errors,
    Figures,
    measure_matrix,
    weighted_errors,
    worst_parts,
)
from torchstone.tensors.analysis.values.distribution import Distribution
from torchstone.tensors.formats import Format, quantize
from torchstone.tensors.formats._quantize import smallest_scaled

SAMPLE = 1 << 16
"""Single values on which 16-bit formats are measured: two standard errors are about 0.1 dB."""
ALL_VALUES = Text("every value", "全部数值")
IN_BINS = Text(
    "shares: every value; errors: a histogram of 2,048 bins per octave, within 0.05 dB",
    "占比：全部数值；误差：每个二进制指数区间分 2048 格的直方图，误差在 0.05 dB 以内",
)


@dataclass(frozen=True, slots=True)
class _Limits:
    """Magnitudes up to which values are flushed, are subnormal, and fit."""

    flushed: np.float32
    subnormal: np.float32
    fits: np.float32


def figures_by_format(
    distribution: Distribution, formats: tuple[Format, ...], rows: torch.Tensor
) -> tuple[Figures, ...]:
    """Each format with its usual granularity and scale; `rows` is a sample of whole rows."""
    plain = tuple(item for item in formats if item.granularity == "tensor")
    shares = _shares(distribution, plain)
    sample = None
    found: list[Figures] = []
    for item in formats:
        if item not in shares:
            found.append(_on_rows(distribution, item, rows))
            continue
        if sample is None and item.is_wide and not distribution.exact:
            sample = distribution.source.sample_values(SAMPLE)
        found.append(_at_tensor(distribution, item, shares[item], sample, rows))
    return tuple(found)


def _on_rows(distribution: Distribution, item: Format, rows: torch.Tensor) -> Figures:
    """Block formats need neighbours: measured on whole rows."""
    return measure_matrix(
        rows, item, item.granularity, item.scale, rows_how(rows, distribution.total),
        distribution.largest, distribution.total,
    )  # fmt: skip


def rows_how(rows: torch.Tensor, total: int) -> Text:
    if rows.numel() >= total:
        return ALL_VALUES
    count = f"{rows.numel():,}"
    return Text(f"a sample of {count} values in whole rows", f"按整行抽样 {count} 个数值")


def _at_tensor(
    distribution: Distribution,
    item: Format,
    shares: tuple[float, float, float],
    sample: torch.Tensor | None,
    rows: torch.Tensor,
) -> Figures:
    errors, how = _errors(distribution, item, sample)
    return Figures(
        item.name, "tensor", item.scale, *shares, errors.median, errors.largest, errors.sqnr_db,
        errors.cosine, *worst_parts(rows, item, distribution.largest), how, errors.spread_db,
    )  # fmt: skip


def _errors(
    distribution: Distribution, item: Format, sample: torch.Tensor | None
) -> tuple[Errors, Text]:
    if item.is_wide and sample is not None:
        size = sample[sample.isfinite() & (sample != 0)].abs()
        errors = _round_trip(size, item, distribution.largest, sampled_from=distribution.total)
        spread = f"± {errors.spread_db:.2f} dB" if errors.spread_db is not None else "± 0 dB"
        said = f"{sample.numel():,}"
        return errors, Text(
            f"shares: every value; errors: a sample of {said} values, {spread}",
            f"占比：全部数值；误差：抽样 {said} 个数值，{spread}",
        )
    values = torch.from_numpy(distribution.values)
    errors = _round_trip(
        values, item, distribution.largest, distribution.counts, distribution.width
    )
    return errors, ALL_VALUES if distribution.exact else IN_BINS


def _round_trip(
    size: torch.Tensor,
    item: Format,
    largest: float,
    counts: NDArray[np.int64] | None = None,
    width: NDArray[np.float64] | None = None,
    sampled_from: int = 0,
) -> Errors:
    made = quantize(size.reshape(1, -1), item, "tensor", item.scale, largest).values.reshape(-1)
    kept = torch.where(made.isfinite(), made, torch.full_like(made, item.element.largest))
    if counts is None:
        counts = np.ones(len(size), np.int64)
    return weighted_errors(
        size.double().numpy(), kept.double().numpy(), counts, width, sampled_from
    )


def _shares(
    distribution: Distribution, formats: tuple[Format, ...]
) -> dict[Format, tuple[float, float, float]]:
    """Flushed, subnormal and overflowing shares, exactly, for all formats in one go."""
    if not formats:
        return {}
    limits = [_limits(item, distribution.largest) for item in formats]
    flat = np.array(
        [value for item in limits for value in (item.flushed, item.subnormal, item.fits)],
        np.float32,
    )
    counts = distribution.count_up_to(flat).reshape(-1, 3)
    nonzero, total = max(distribution.nonzero, 1), max(distribution.total, 1)
    return {
        item: (
            int(flushed) / nonzero,
            max(int(low) - int(flushed), 0) / nonzero,
            (distribution.nonzero - int(fits)) / total,
        )
        for item, (flushed, low, fits) in zip(formats, counts, strict=True)
    }


def _limits(item: Format, largest: float) -> _Limits:
    """The limits in units of the tensor, under the scale that the format would use."""
    element = item.element
    multiplier = _multiplier(item, largest)
    if isinstance(element, IntegerFormat):
        flush = _last_below(multiplier, 0.5, True)
        return _Limits(flush, flush, _last_below(multiplier, element.largest + 0.5, True))
    return _Limits(
        _last_below(multiplier, element.flushes_at, True),
        _last_below(multiplier, element.smallest_normal, False),
        _last_below(multiplier, element.overflow_from, not element.overflows_at_tie),
    )


def _multiplier(item: Format, largest: float) -> float:
    """What `quantize` multiplies values with, as the fp32 number that it uses."""
    if item.scale == "none" or largest == 0:
        return 1.0
    one = torch.tensor([[largest]], dtype=torch.float32)
    made = quantize(one, item, "tensor", item.scale, largest)
    return float(made.scaled[0, 0]) / largest if item.scale != "amax" else _amax(item, largest)


def _amax(item: Format, largest: float) -> float:
    size = np.float32(max(largest, smallest_scaled(item.element)))
    top = np.float32(item.element.largest)
    if isinstance(item.element, IntegerFormat):
        return float(np.float32(1.0) / (size / top))
    return float(top / size)


def _last_below(multiplier: float, limit: float, included: bool) -> np.float32:
    """The largest fp32 magnitude whose product with the multiplier, in fp32, is below the limit."""
    factor = np.float32(multiplier)
    low, high = 0, 0x7F7FFFFF
    with np.errstate(over="ignore", under="ignore"):
        while low < high:
            middle = (low + high + 1) // 2
            product = float(np.array([middle], np.uint32).view(np.float32)[0] * factor)
            if product < limit or (included and product == limit):
                low = middle
            else:
                high = middle - 1
    return np.float32(np.array([low], np.uint32).view(np.float32)[0])
