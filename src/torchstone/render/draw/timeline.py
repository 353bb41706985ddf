"""What happened one after the other, in lanes."""

from __future__ import annotations

from torchstone.core.pictures import Timeline
from torchstone.core.quantity import human
from torchstone.render.draw._figure import Json, figure, point, said
from torchstone.render.draw.document import anchor
from torchstone.render.style import Style, cells, printable
from torchstone.render.words import COLOURS, MARKS


def text(evidence: Timeline, style: Style) -> list[str]:
    lines = [printable(style.words(evidence.name))]
    wide = max((cells(style.words(span.name)) for span in evidence.spans), default=0)
    longest = max((span.length for span in evidence.spans), default=0.0) or 1.0
    for span in evidence.spans:
        name = printable(style.words(span.name))
        bar = "█" * max(round(span.length / longest * 20), 1) if span.length else ""
        took = human(span.length, evidence.unit) if span.length else "–"
        mark = style.paint(MARKS[span.state], COLOURS[span.state])
        row = f"  {mark} {name}{' ' * (wide - cells(name))}  {took:>9}  {bar:<20}  {printable(style.words(span.note))}"
        lines.append(row.rstrip())
    return lines


def html(evidence: Timeline, style: Style) -> str:
    data: dict[str, Json] = {
        "unit": evidence.unit,
        "spans": [
            {
                "name": said(span.name), "start": point(span.start), "length": point(span.length),
                "state": span.state, "note": said(span.note), "lane": printable(span.lane),
                "link": anchor(span.link) if span.link else "",
            }
            for span in evidence.spans
        ],
    }  # fmt: skip
    return figure("timeline", evidence.name, "", data, text(evidence, style))
