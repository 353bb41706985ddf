"""Parts of a whole as one bar, with limits on its scale."""

from __future__ import annotations

from torchstone.core.pictures import Stack
from torchstone.core.quantity import human
from torchstone.render.draw._figure import Json, figure, point, said
from torchstone.render.style import INSIDE, Style, wrapped_inside

_CELLS = 40
_FILLS = "█▓▒░▚▞▖▘"


def text(evidence: Stack, style: Style) -> list[str]:
    whole = sum(part.value for part in evidence.parts) or 1.0
    fills = (_FILLS[number % len(_FILLS)] for number in range(len(evidence.parts)))
    room = min(_CELLS, style.width - INSIDE) if style.width else _CELLS
    bar, legend = "", []
    for part, fill in zip(evidence.parts, fills, strict=True):
        bar += fill * max(round(part.value / whole * room), 1 if part.value else 0)
        legend.append(f"{fill} {style.words(part.name)} {human(part.value, evidence.unit)}")
    limits = (
        f"{style.words(item.name)} {human(item.value, evidence.unit)}" for item in evidence.limits
    )
    tail = "  |  ".join((human(whole, evidence.unit), *limits))
    rows = (f"{style.words(evidence.name)}  {bar}  {tail}", "  ".join(legend))
    return [line for row in rows for line in wrapped_inside(row, style)]


def html(evidence: Stack, style: Style) -> str:
    data: dict[str, Json] = {
        "parts": [{"n": said(part.name), "v": point(part.value)} for part in evidence.parts],
        "limits": [{"n": said(item.name), "v": point(item.value)} for item in evidence.limits],
        "unit": evidence.unit,
    }
    return figure("stack", evidence.name, evidence.how, data, text(evidence, style))
