"""Axes and colours shared by the pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDTH, HEIGHT = 640, 220
LEFT, BOTTOM = 92, 34
BLOCKS = "▁▂▃▄▅▆▇█"
SERIES_COLOURS = ("var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--c6)")


def finite(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def spark(values: Sequence[float | None], width: int = 60) -> str:
    """A row of blocks; what is not a number is a gap."""
    good = finite(values)
    if not good:
        return ""
    step = max(len(values) / width, 1.0)
    picked = [values[int(i * step)] for i in range(int(len(values) / step))]
    low, high = min(good), max(good)
    span = (high - low) or 1.0
    return "".join(
        " " if value is None or not math.isfinite(value) else BLOCKS[int((value - low) / span * 7)]
        for value in picked
    )


def number(value: float | None) -> str:
    """A number a person can read."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 1000 and (value == int(value) or abs(value) < 1e7):
        return f"{value:,.0f}"
    return f"{value:.4g}"


class Axis:
    """Maps values to pixels, on a plain or a logarithmic scale."""

    def __init__(self, values: Sequence[float], start: float, end: float, log: bool) -> None:
        good = [v for v in finite(values) if not log or v > 0]
        self._log = log
        low, high = (min(good), max(good)) if good else (0.0, 1.0)
        self.low, self.high = low, high if high > low else low + (abs(low) or 1.0)
        self._start, self._end = start, end

    def at(self, value: float) -> float | None:
        if not math.isfinite(value) or (self._log and value <= 0):
            return None
        a, b, v = self.low, self.high, value
        if self._log:
            a, b, v = math.log(a or 1e-300), math.log(b), math.log(v)
        share = (v - a) / ((b - a) or 1.0)
        return self._start + share * (self._end - self._start)

    def ticks(self, count: int = 5) -> list[float]:
        if self._log:
            low, high = math.log(self.low or 1e-300), math.log(self.high)
            return [math.exp(low + (high - low) * i / (count - 1)) for i in range(count)]
        found = [self.low + (self.high - self.low) * i / (count - 1) for i in range(count)]
        if self.high - self.low >= 4 * count and self.low == int(self.low):
            return [float(round(tick)) for tick in found]  # steps and tokens come in whole numbers
        return found
