"""What another format or another loss scale would have done, from stored exponent counts alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.runtime.number_formats import FORMATS, NumberFormat
from torchstone.watch.record.runfile import Run

_BIAS = 127
_SHIFTS = range(-8, 33)


@dataclass(frozen=True, slots=True)
class Loss:
    """Shares of the nonzero gradients that a format would lose at one scale."""

    format: str
    shift: int
    """The scale is 2 to this power."""
    flushed: float
    subnormal: float
    overflow: float
    """Counted by exponent: what lies in the last binade above the largest number counts as over."""
    worst_layer: str
    worst_flushed: float

    @property
    def total(self) -> float:
        """What decides between scales: an overflow ruins a step, a flush loses a value."""
        return self.flushed + 0.25 * self.subnormal + 100 * self.overflow


def gradient_counts(run: Run) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Exponent counts of every layer over the whole run, of unscaled gradients."""
    names: list[str] = []
    totals: list[NDArray[np.int64]] = []
    for place, watched in enumerate(run.actors):
        layers = [str(name) for name in watched.get("layers", [])]
        total = np.zeros((len(layers), 256), np.int64)
        for _, number, scale, counts in run.counts:
            if number == place and counts.shape == total.shape:
                total += _shifted(counts, -round(float(np.log2(scale))) if scale > 0 else 0)
        names += layers
        totals.append(total)
    whole = np.concatenate(totals) if totals else np.zeros((0, 256), np.int64)
    return tuple(names), whole


def _shifted(counts: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    """Counts of values times a power of two; zeros stay, what leaves the range stays at its end."""
    if shift == 0:
        return counts
    moved = np.zeros_like(counts)
    moved[:, 0] = counts[:, 0]
    moved[:, 255] = counts[:, 255]
    for exponent in range(1, 255):
        moved[:, min(max(exponent + shift, 1), 254)] += counts[:, exponent]
    return moved


def what_if(
    names: tuple[str, ...], counts: NDArray[np.int64], number_format: NumberFormat, shift: int
) -> Loss:
    """What a cast to the format at scale 2**shift would lose."""
    exponents = np.arange(256) - _BIAS + shift
    values = counts.copy()
    values[:, 0] = values[:, 255] = 0  # zeros; NaN and infinity are no matter of the format
    nonzero = np.maximum(values.sum(axis=1), 1)
    flushed = values[:, exponents < number_format.flush_exponent].sum(axis=1)
    low = values[:, exponents < number_format.normal_exponent].sum(axis=1) - flushed
    top = int(np.floor(np.log2(number_format.largest)))
    over = values[:, exponents > top].sum(axis=1)
    whole = max(int(values.sum()), 1)
    shares = flushed / nonzero
    worst = int(shares.argmax()) if len(shares) else -1
    return Loss(
        number_format.name, shift, float(flushed.sum() / whole), float(low.sum() / whole),
        float(over.sum() / whole), names[worst] if worst >= 0 else "",
        float(shares[worst]) if worst >= 0 else 0.0,
    )  # fmt: skip


def best_scale(
    names: tuple[str, ...], counts: NDArray[np.int64], number_format: NumberFormat
) -> Loss:
    """The power of two that loses least; of equals the smallest."""
    return min(
        (what_if(names, counts, number_format, shift) for shift in _SHIFTS),
        key=lambda loss: (round(loss.total, 9), abs(loss.shift)),
    )


def parse_what_if(word: str) -> tuple[NumberFormat, int | None]:
    """`fp16`, or `fp16:2^12` for one scale."""
    name, _, scale = word.partition(":")
    known = FORMATS.get(name)
    power = scale.removeprefix("2^").removeprefix("2**")
    good = not scale or (
        scale.startswith(("2^", "2**")) and power.isascii() and power.lstrip("-").isdecimal()
    )
    if known is None or not good or (power and abs(int(power)) > 126):
        raise UsageError(
            "--what-if", word,
            Text(f"one of {', '.join(FORMATS)}, with :2^K for a loss scale",
                 f"{'、'.join(FORMATS)} 之一，可加 :2^K 表示 loss scale"),
            Text("pass fp16 or fp16:2^12", "例如 fp16 或 fp16:2^12"),
        )  # fmt: skip
    return known, int(power) if power else None
