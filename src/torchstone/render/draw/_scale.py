"""Numbers, sparklines and colours shared by the pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torchstone.core.thinning import columns_of
from torchstone.render.style import INSIDE, Style, cells, cut

BLOCKS = "▁▂▃▄▅▆▇█"
SERIES_COLOURS = tuple(f"var(--c{number})" for number in range(1, 9))


def finite(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


_WIDEST, _NARROWEST = 60, 10
"""Blocks of a row: more tell nothing new, fewer show no course."""


def spark_line(
    name: str,
    values: Sequence[float | None],
    ends: str,
    style: Style,
    scale: tuple[float, float] | None = None,
) -> str:
    """A name, a row of blocks and its ends, within the columns of the terminal."""
    if not style.width:
        return f"{name} {spark(values, scale=scale)} {ends}"
    room = style.width - INSIDE - cells(ends) - 3
    label = cut(name, max(room - _NARROWEST, _NARROWEST))
    width = min(max(room - cells(label), _NARROWEST), _WIDEST)
    return f"{label} {spark(values, width, scale)} {ends}"


def spark(
    values: Sequence[float | None],
    width: int = _WIDEST,
    scale: tuple[float, float] | None = None,
) -> str:
    """A row of blocks in which every extreme is seen; what is not a number is `!`, a hole a space.
    The scale is that of the values, unless another one is given."""
    picked = columns_of(values, width)
    good = finite(picked)
    if not good:
        return ""
    low, high = scale or (min(good), max(good))
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
    if 1000 <= abs(value) < 1e15 and (value == int(value) or abs(value) < 1e7):
        return f"{value:,.0f}"
    return f"{value:.4g}"
