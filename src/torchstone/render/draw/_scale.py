"""Numbers, sparklines and colours shared by the pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torchstone.core.thinning import columns_of

BLOCKS = "▁▂▃▄▅▆▇█"
SERIES_COLOURS = tuple(f"var(--c{number})" for number in range(1, 9))


def finite(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def spark(values: Sequence[float | None], width: int = 60) -> str:
    """A row of blocks in which every extreme is seen; what is not a number is `!`, a hole a space."""
    picked = columns_of(values, width)
    good = finite(picked)
    if not good:
        return ""
    low, high = min(good), max(good)
    span = (high - low) or 1.0
    return "".join(
        " "
        if value is None
        else "!"
        if not math.isfinite(value)
        else BLOCKS[int((value - low) / span * 7)]
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
