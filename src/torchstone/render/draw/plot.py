"""Several curves over one axis."""

from __future__ import annotations

from torchstone.core.pictures import Plot, Series
from torchstone.core.quantity import human, scales
from torchstone.render.draw import _scale
from torchstone.render.markup import escape, markup
from torchstone.render.style import Style, printable

_POINTS = 1000


def text(evidence: Plot, style: Style) -> list[str]:
    lines = [printable(style.words(evidence.name))]
    width = max((len(style.words(series.name)) for series in evidence.series), default=0)
    for series in evidence.series:
        good = _scale.finite(series.y)
        low, high = (min(good), max(good)) if good else (0.0, 0.0)
        if series.unit and scales(series.unit):
            ends = f"{human(low, series.unit)} … {human(high, series.unit)}"
        else:
            ends = f"{_scale.number(low)} … {_scale.number(high)} {series.unit}"
        row = f"  {style.words(series.name):<{width}} {_scale.spark(series.y)} {ends if good else '–'}"
        lines.append(printable(row.rstrip()))
    return lines


def html(evidence: Plot, style: Style) -> str:
    half = _slot(max(map(len, (s.x for s in evidence.series)), default=1)) / 2
    inset = half if evidence.bars else 0.0  # the outer bars must not stand on the labels
    x_axis = _scale.Axis(
        [x for s in evidence.series for x in s.x], _scale.LEFT + inset,
        _scale.WIDTH - 8 - inset, evidence.log_x,
    )  # fmt: skip
    y_axis = _scale.Axis(
        [y for s in evidence.series for y in s.y], _scale.HEIGHT - _scale.BOTTOM, 8, evidence.log_y
    )
    units = {series.unit for series in evidence.series}
    parts = _frame(x_axis, y_axis, evidence, units.pop() if len(units) == 1 else "")
    for index, series in enumerate(evidence.series):
        colour = _scale.SERIES_COLOURS[index % len(_scale.SERIES_COLOURS)]
        draw = _bars if evidence.bars else _curve
        parts.append(draw(series, x_axis, y_axis, colour))
        parts += _marks(series, x_axis)
    legend = "".join(
        f'<span><i style="background:{_scale.SERIES_COLOURS[i % len(_scale.SERIES_COLOURS)]}"></i>'
        f"{markup(series.name)} <small>{markup(series.how)}</small></span>"
        for i, series in enumerate(evidence.series)
    )
    label = escape(style.words(evidence.name))
    return (
        f'<figure><figcaption>{markup(evidence.name)}</figcaption><svg viewBox="0 0 {_scale.WIDTH} {_scale.HEIGHT}" '
        f'role="img" aria-label="{label}">{"".join(parts)}</svg>'
        f'<div class="legend">{legend}</div></figure>'
    )


def _frame(x_axis: _scale.Axis, y_axis: _scale.Axis, evidence: Plot, unit: str) -> list[str]:
    scaled = bool(unit) and scales(unit)
    floor = _scale.HEIGHT - _scale.BOTTOM
    parts: list[str] = []
    for tick in y_axis.ticks():
        y = y_axis.at(tick)
        if y is not None:
            parts.append(
                f'<line x1="{_scale.LEFT}" x2="{_scale.WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
            )
            parts.append(
                f'<text x="{_scale.LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{human(round(tick) if unit == "B" else tick, unit) if scaled else _scale.number(tick)}</text>'
            )
    ticks = x_axis.ticks()
    for place, tick in enumerate(ticks):
        x = x_axis.at(tick)
        if x is not None:
            anchor = "end" if place == len(ticks) - 1 else "middle"  # the last must not be cut
            parts.append(
                f'<text x="{x:.1f}" y="{floor + 15}" text-anchor="{anchor}">{_scale.number(tick)}</text>'
            )
    parts.append(
        f'<text x="{_scale.WIDTH - 8}" y="{_scale.HEIGHT - 4}" text-anchor="end">{escape(evidence.x_name)}</text>'
    )
    parts.append(
        f'<text x="4" y="{_scale.HEIGHT - 4}">{"" if scaled else escape(evidence.y_name)}</text>'
    )
    return parts


def _curve(series: Series, x_axis: _scale.Axis, y_axis: _scale.Axis, colour: str) -> str:
    step = max(1, len(series.x) // _POINTS)
    runs: list[list[str]] = [[]]
    for x, y in list(zip(series.x, series.y, strict=False))[::step]:
        px, py = x_axis.at(x), y_axis.at(y)
        if px is None or py is None:
            runs.append([])  # a hole in the data stays a hole in the curve
        else:
            runs[-1].append(f"{px:.1f},{py:.1f}")
    return "".join(_run(points, colour) for points in runs if points)


def _run(points: list[str], colour: str) -> str:
    if len(points) == 1:  # a line of one point would be invisible
        x, y = points[0].split(",")
        return f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}"/>'
    joined = " ".join(points)
    return f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="1.6"/>'


def _slot(count: int) -> float:
    """The width that one of so many bars may have, with the gap beside it."""
    return (_scale.WIDTH - 8 - _scale.LEFT) / max(count, 1)


def _bars(series: Series, x_axis: _scale.Axis, y_axis: _scale.Axis, colour: str) -> str:
    floor = _scale.HEIGHT - _scale.BOTTOM
    room = 0.8 * _slot(len(series.x))
    parts = []
    for x, y in zip(series.x, series.y, strict=False):
        px, py = x_axis.at(x), y_axis.at(y)
        if px is not None and py is not None:
            parts.append(
                f'<rect x="{px - room / 2:.1f}" y="{py:.1f}" width="{room:.1f}" height="{max(floor - py, 0.5):.1f}" '
                f'fill="{colour}"><title>{_scale.number(x)}: {_scale.number(y)}</title></rect>'
            )
    return "".join(parts)


def _marks(series: Series, x_axis: _scale.Axis) -> list[str]:
    floor = _scale.HEIGHT - _scale.BOTTOM
    places = [(mark, x_axis.at(mark)) for mark in series.marks]
    return [
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="8" y2="{floor}" class="alert"><title>{_scale.number(mark)}</title></line>'
        for mark, x in places
        if x is not None
    ]
