"""A grid of values in shades."""

from __future__ import annotations

import math

from torchstone.core.pictures import Heatmap
from torchstone.render.draw import _scale
from torchstone.render.draw._figure import Json, figure, point, points, said
from torchstone.render.style import Style, cells, printable

_SHADES = " ░▒▓█"


def _share(value: float | None, low: float, high: float, log: bool) -> float | None:
    if value is None or not math.isfinite(value) or (log and value <= 0):
        return None
    if log:
        low, high, value = math.log(low), math.log(high), math.log(value)
    return (value - low) / ((high - low) or 1.0)


def _ends(evidence: Heatmap) -> tuple[float, float]:
    values = [v for row in evidence.values for v in _scale.finite(row) if not evidence.log or v > 0]
    return (min(values), max(values)) if values else (1.0, 1.0)


def text(evidence: Heatmap, style: Style) -> list[str]:
    low, high = _ends(evidence)
    width = max((cells(name) for name in evidence.rows), default=0)
    ends = f"{_scale.number(low)} … {_scale.number(high)} {evidence.unit}"
    lines = [printable(f"{style.words(evidence.name)}: {ends} ({style.words(evidence.how)})")]
    for name, row in zip(evidence.rows, evidence.values, strict=False):
        shares = (_share(value, low, high, evidence.log) for value in row)
        shades = "".join("·" if s is None else _SHADES[min(int(s * 5), 4)] for s in shares)
        lines.append(f"{printable(name)}{' ' * (width - cells(name))} {shades}")
    return lines


def html(evidence: Heatmap, style: Style) -> str:
    low, high = _ends(evidence)
    data: dict[str, Json] = {
        "rows": [printable(name) for name in evidence.rows],
        "columns": [printable(name) for name in evidence.columns],
        "values": [points(row) for row in evidence.values],
        "low": point(low),
        "high": point(high),
        "unit": evidence.unit,
        "log": evidence.log,
        "x_name": said(evidence.x_name),
    }
    return figure("heatmap", evidence.name, evidence.how, data, text(evidence, style))
