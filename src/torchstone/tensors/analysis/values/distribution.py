"""How a tensor's values are distributed: every value with its count, or counts in fine bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.tensors.analysis.values.passes import SHIFT, Count16Bit, CountFp32, count_up_to
from torchstone.tensors.analysis.values.source import Source, count_of

SMALL = 1 << 18
"""Values up to which each is kept: rounding them all takes less than a histogram of bins."""


@dataclass(frozen=True)
class Distribution:
    """Values with counts; `width` is 0 where a value is exact, else the width of its bin."""

    values: NDArray[np.float32]
    """Nonzero and finite magnitudes, rising (bin centres where they were binned)."""
    counts: NDArray[np.int64]
    width: NDArray[np.float64] | None
    """None: every value is exact."""
    total: int
    zeros: int
    nans: int
    infinities: int
    largest: float
    holds_16_bits: bool
    """Every value is one that bf16 can hold."""
    source: Source

    @property
    def exact(self) -> bool:
        return self.width is None

    @property
    def nonzero(self) -> int:
        return int(self.counts.sum())

    @property
    def median(self) -> float:
        """Of the nonzero magnitudes."""
        if not len(self.values):
            return 0.0
        reached = np.cumsum(self.counts)
        return float(self.values[np.searchsorted(reached, reached[-1] / 2)])

    @property
    def smallest(self) -> float:
        return float(self.values[0]) if len(self.values) else 0.0

    def exponent_counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Exponents that occur, and how many values have each."""
        exponents = np.frexp(self.values.astype(np.float64))[1] - 1
        found, place = np.unique(exponents, return_inverse=True)
        return found, np.bincount(place, self.counts, len(found)).astype(np.int64)

    def count_up_to(self, limits: NDArray[np.float32], settle: bool = True) -> NDArray[np.int64]:
        """How many nonzero finite values have a magnitude up to each limit.

        Exact with `settle`, at the price of a second pass where a limit cuts a bin; else up to the
        start of that bin.
        """
        totals = np.concatenate(([0], np.cumsum(self.counts)))
        if self.exact:
            places = np.searchsorted(self.values, limits, side="right")
            return np.asarray(totals[places], np.int64)
        lower = _bin_start(self.values)
        bits = np.maximum(limits, 0).view(np.uint32)
        place = np.searchsorted(lower, (bits >> SHIFT) << SHIFT, side="left")
        inside = np.zeros(len(limits), bool)
        known = place < len(lower)
        inside[known] = lower[place[known]] == (bits[known] >> SHIFT) << SHIFT
        whole = (bits & ((1 << SHIFT) - 1)) == (1 << SHIFT) - 1
        counts = totals[place + (inside & whole)]
        open_ones = inside & ~whole & (limits < self.largest)
        counts[limits >= self.largest] = totals[-1]
        if (
            settle and open_ones.any()
        ):  # the limit cuts a bin that is not empty: count the values themselves
            different, back = np.unique(limits[open_ones], return_inverse=True)
            counts[open_ones] = self._read_up_to(different)[back] - self.zeros
        return np.asarray(counts, np.int64)

    def _read_up_to(self, limits: NDArray[np.float32]) -> NDArray[np.int64]:
        limits = np.ascontiguousarray(limits, np.float32)
        return sum(
            (count_up_to(chunk.view(np.float32), limits) for chunk in self.source.chunks()),
            start=np.zeros(len(limits), np.int64),
        )


def _bin_start(centres: NDArray[np.float32]) -> NDArray[np.uint32]:
    return np.asarray((centres.view(np.uint32) >> SHIFT) << SHIFT, np.uint32)


def read_distribution(source: Source) -> Distribution:
    """One pass over the tensor."""
    if source.pattern_dtype is not None:
        return _from_patterns(source, source.pattern_dtype)
    if count_of(source.shape) <= SMALL:
        return _from_values(source)
    return _from_bins(source)


def _from_values(source: Source) -> Distribution:
    chunks = [chunk.view(np.float32) for chunk in source.chunks()]
    values = np.abs(np.concatenate(chunks)) if chunks else np.zeros(0, np.float32)
    finite = np.isfinite(values)
    nonzero = np.sort(values[finite & (values > 0)])
    return Distribution(
        nonzero, np.ones(len(nonzero), np.int64), None, values.size,
        int(np.count_nonzero(values == 0)), int(np.isnan(values).sum()),
        int(np.isinf(values).sum()), float(nonzero[-1]) if len(nonzero) else 0.0,
        not bool((nonzero.view(np.uint32) & 0xFFFF).any()), source,
    )  # fmt: skip


def _from_patterns(source: Source, dtype: torch.dtype) -> Distribution:
    counter = Count16Bit()
    for chunk in source.chunks():
        counter.add(chunk.view(np.uint16))
    folded = counter.counts[:0x8000] + counter.counts[0x8000:]  # the sign does not matter
    patterns = torch.arange(0x8000, dtype=torch.int32).to(torch.uint16)
    values = patterns.view(dtype).float().numpy()
    finite = np.isfinite(values)
    used = finite & (values > 0) & (folded > 0)
    return Distribution(
        values[used], folded[used], None, int(folded.sum()), int(folded[0]),
        int(folded[np.isnan(values)].sum()), int(folded[np.isinf(values)].sum()),
        float(values[used][-1]) if used.any() else 0.0, dtype == torch.bfloat16, source,
    )  # fmt: skip


def _from_bins(source: Source) -> Distribution:
    counter = CountFp32()
    total = 0
    for chunk in source.chunks():
        counter.add(chunk.view(np.float32))
        total += chunk.size
    counts, facts = counter.result()
    counts[0] -= facts.zeros
    used = np.flatnonzero(counts[: 0x7F800000 >> SHIFT])
    lower = (used.astype(np.uint32) << SHIFT).view(np.float32).astype(np.float64)
    upper = ((used.astype(np.uint32) + 1) << SHIFT).astype(np.uint32).view(np.float32)
    upper = np.where(np.isfinite(upper), upper.astype(np.float64), 2.0**128)
    centres = ((used.astype(np.uint32) << SHIFT) | (1 << (SHIFT - 1))).view(np.float32)
    return Distribution(
        centres, counts[used], upper - lower, total, facts.zeros, facts.nans, facts.infinities,
        facts.largest, facts.bits & 0xFFFF == 0, source,
    )  # fmt: skip
