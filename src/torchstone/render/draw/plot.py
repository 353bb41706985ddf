"""Several curves over one axis."""

from __future__ import annotations

from torchstone.core.pictures import Plot, Series
from torchstone.core.quantity import human, scales
from torchstone.core.text import Text
from torchstone.core.thinning import thinned
from torchstone.render.draw import _scale
from torchstone.render.draw._figure import Json, figure, points, said
from torchstone.render.style import Style, cells, printable

_POINTS = 1600
"""Points of one curve: twice as many as a wide chart has pixels to show their extremes in."""
_MANY_MARKS = 40
_X_NAMES = {
    "step": Text("step", "步"), "operator": Text("operator", "算子"), "op": Text("operator", "算子"),
    "exponent": Text("exponent", "指数"), "allocations": Text("allocation", "第几次分配"),
}  # fmt: skip
"""Names of axes that tools write as one word."""


def text(evidence: Plot, style: Style) -> list[str]:
    lines = [printable(style.words(evidence.name))]
    wide = max((cells(style.words(series.name)) for series in evidence.series), default=0)
    scale = _common_scale(evidence)
    for series in evidence.series:
        good = _scale.finite(series.y)
        low, high = (min(good), max(good)) if good else (0.0, 0.0)
        if series.unit and scales(series.unit):
            ends = f"{human(low, series.unit)} … {human(high, series.unit)}"
        else:
            ends = f"{_scale.number(low)} … {_scale.number(high)} {series.unit}"
        name = style.words(series.name)
        label = name + " " * (wide - cells(name))
        row = _scale.spark_line(label, series.y, ends if good else "–", style, scale)
        lines.append(printable(f"  {row}".rstrip()))
    return lines


def _common_scale(evidence: Plot) -> tuple[float, float] | None:
    """Of several curves in one unit, so that they can be compared; None for a curve alone."""
    if len(evidence.series) < 2 or len({series.unit for series in evidence.series}) > 1:
        return None
    good = [value for series in evidence.series for value in _scale.finite(series.y)]
    return (min(good), max(good)) if good else None


def html(evidence: Plot, style: Style) -> str:
    data: dict[str, Json] = {
        "series": [_series(series) for series in evidence.series],
        "x_name": said(_X_NAMES.get(evidence.x_name, evidence.x_name)),
        "y_name": said(evidence.y_name),
        "log_x": evidence.log_x,
        "log_y": evidence.log_y,
        "bars": evidence.bars,
    }
    hows = {series.how for series in evidence.series}
    how = hows.pop() if len(hows) == 1 else ""
    return figure("plot", evidence.name, how, data, text(evidence, style))


def _series(series: Series) -> Json:
    keep = thinned(series.y, _POINTS, _marked(series))
    data: dict[str, Json] = {
        "name": said(series.name),
        "unit": series.unit,
        "x": points([series.x[i] for i in keep]),
        "y": points([series.y[i] for i in keep]),
    }
    if series.marks:
        data["marks"] = points(series.marks)
        data["mark_names"] = [said(name) for name in series.mark_names]
    if series.low:
        data["low"] = points([series.low[i] for i in keep])
        data["high"] = points([series.high[i] for i in keep])
    return data


def _marked(series: Series) -> list[int]:
    """Where the marks stand among the points; of many, none needs its whole neighbourhood."""
    if not series.marks or len(series.marks) > _MANY_MARKS:
        return []
    return [
        min(range(len(series.x)), key=lambda i: abs(series.x[i] - mark)) for mark in series.marks
    ]
