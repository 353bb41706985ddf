"""Errors from every value of a tensor, in chunks: what `exact=True` adds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from torchstone.core.text import Text
from torchstone.tensors.analysis.errors.figures import Figures, decibels
from torchstone.tensors.analysis.values.distribution import Distribution
from torchstone.tensors.analysis.values.passes import SHIFT, CountFp32
from torchstone.tensors.analysis.values.source import CHUNK
from torchstone.tensors.formats import Format, quantize

_HOW = Text(
    "every value, rounded one by one (median within 0.05 %)",
    "逐一舍入全部数值（中位数误差在 0.05% 以内）",
)


def figures_in_full(
    distribution: Distribution, formats: tuple[Format, ...], figures: tuple[Figures, ...]
) -> tuple[Figures, ...]:
    """The figures with errors of all values, for formats with one scale for the tensor."""
    return tuple(
        _in_full(distribution, item, known) if item.granularity == "tensor" else known
        for item, known in zip(formats, figures, strict=True)
    )


def _in_full(distribution: Distribution, item: Format, known: Figures) -> Figures:
    top = distribution.largest or 1.0
    sums = np.zeros(4)  # signal, noise, product, squares of what is read back
    relative = CountFp32()
    for chunk in distribution.source.chunks():
        for start in range(0, chunk.size, CHUNK):
            values = torch.from_numpy(chunk[start : start + CHUNK].view(np.float32))
            _add(values, item, top, sums, relative)
    counts, facts = relative.result()
    signal, noise, product, other = (float(value) for value in sums)
    cosine = product / (signal * other) ** 0.5 if signal > 0 and other > 0 else 1.0
    return replace(
        known, sqnr_db=decibels(signal, noise), cosine=min(cosine, 1.0), how=_HOW, spread_db=None,
        median_error=_median(counts), largest_error=facts.largest,
    )  # fmt: skip


def _add(
    values: torch.Tensor,
    item: Format,
    top: float,
    sums: np.ndarray,
    relative: CountFp32,
) -> None:
    kept = values[values.isfinite() & (values != 0)].reshape(1, -1)
    if not kept.numel():
        return
    back = quantize(kept, item, "tensor", item.scale, top).values.double()
    largest = torch.copysign(torch.tensor(item.element.largest, dtype=torch.float64), back)
    back = torch.where(back.isfinite(), back, largest) / top
    x = kept.double() / top
    error = (x - back).abs()
    sums += [float((x**2).sum()), float((error**2).sum()), float((x * back).sum()),
             float((back**2).sum())]  # fmt: skip
    relative.add((error / x.abs()).float().numpy())


def _median(counts: np.ndarray) -> float:
    reached = np.cumsum(counts)
    place = int(np.searchsorted(reached, reached[-1] / 2)) if reached[-1] else 0
    middle = np.uint32((place << SHIFT) | (1 << (SHIFT - 1))) if place else np.uint32(0)
    return float(np.array([middle], np.uint32).view(np.float32)[0])
