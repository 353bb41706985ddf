"""Values over steps: a row of blocks in the terminal, a curve in a page."""

from __future__ import annotations

from torchstone.core.pictures import Plot, Series
from torchstone.render.draw import _scale, plot
from torchstone.render.style import Style, printable


def text(evidence: Series, style: Style) -> list[str]:
    good = _scale.finite(evidence.y)
    if not good:
        return [f"{printable(style.words(evidence.name))}: " + style.say("no values", "没有数值")]
    ends = f"{_scale.number(min(good))} … {_scale.number(max(good))} {evidence.unit}"
    name, how = style.words(evidence.name), style.words(evidence.how)
    return [printable(_scale.spark_line(name, evidence.y, f"{ends} ({how})", style))]


def html(evidence: Series, style: Style) -> str:
    return plot.html(Plot(evidence.name, (evidence,), evidence.x_name, evidence.unit), style)
