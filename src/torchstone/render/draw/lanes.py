"""Events of several processes side by side, and who waits for whom."""

from __future__ import annotations

from torchstone.core.pictures import Lane, Lanes
from torchstone.render.draw._figure import Json, figure, said
from torchstone.render.style import Style, cells, printable
from torchstone.render.words import COLOURS, MARKS

_SHOWN = 12
"""Events of a lane in a terminal: the last ones, where they part."""


def text(evidence: Lanes, style: Style) -> list[str]:
    lines = [printable(style.words(evidence.name))]
    names = [printable(style.words(lane.name)) for lane in evidence.lanes]
    wide = max(map(cells, names), default=0)
    for name, lane in zip(names, evidence.lanes, strict=True):
        mark = style.paint(MARKS[lane.state], COLOURS[lane.state])
        lines.append(f"  {mark} {name}{' ' * (wide - cells(name))}  {_events(lane, style)}")
    for wait in evidence.waits:
        word = style.say("waits for", "等待")
        lines.append(printable(f"  {names[wait.lane]} {word} {names[wait.other]}: {wait.what}"))
    return lines


def _events(lane: Lane, style: Style) -> str:
    shown = [
        style.paint(printable(mark.label), COLOURS[mark.state]) if mark.state != "plain"
        else printable(mark.label)
        for mark in lane.marks[-_SHOWN:]
    ]  # fmt: skip
    hidden = len(lane.marks) - len(shown)
    return " → ".join(([f"({hidden} …)"] if hidden else []) + shown)


def html(evidence: Lanes, style: Style) -> str:
    data: dict[str, Json] = {
        "lanes": [
            {
                "name": said(lane.name), "state": lane.state,
                "marks": [
                    {"column": mark.column, "label": printable(mark.label), "state": mark.state,
                     "note": said(mark.note), "group": printable(mark.group)}
                    for mark in lane.marks
                ],
            }
            for lane in evidence.lanes
        ],
        "waits": [[wait.lane, wait.other, printable(wait.what)] for wait in evidence.waits],
    }  # fmt: skip
    return figure("lanes", evidence.name, "", data, text(evidence, style))
