"""Rows under named columns."""

from __future__ import annotations

from torchstone.core.pictures import Cell, Table
from torchstone.core.quantity import human, scales
from torchstone.core.text import Text
from torchstone.render.draw import _scale
from torchstone.render.markup import escape, markup
from torchstone.render.style import Style, cells, cut, joined, printable, wrapped_inside

_ROWS = 40
_LONG = 12


def _shown(cell: Cell, unit: str, style: Style) -> str:
    if isinstance(cell, Text):
        return style.words(cell)
    if unit and scales(unit) and _is_number(cell):
        return human(float(cell), unit)  # type: ignore[arg-type]
    if isinstance(cell, float):
        return _scale.number(cell)
    return "–" if cell is None else f"{cell:,}" if type(cell) is int else str(cell)


def _units(evidence: Table) -> tuple[str, ...]:
    missing = len(evidence.columns) - len(evidence.units)
    return (*evidence.units, *("" for _ in range(missing)))


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def text(evidence: Table, style: Style) -> list[str]:
    units = _units(evidence)
    rows = [
        [printable(_shown(cell, unit, style)) for cell, unit in zip(row, units, strict=True)]
        for row in evidence.rows[:_ROWS]
    ]
    head = [printable(style.words(name)) for name in evidence.columns]
    widths = _fitted([max(cells(row[i]) for row in (head, *rows)) for i in range(len(head))], style)
    right = [all(_is_number(row[i]) for row in evidence.rows) for i in range(len(head))]

    def line(row: list[str]) -> str:
        parts = (_pad(cut(row[i], wide), wide, right[i]) for i, wide in enumerate(widths))
        return "  ".join(parts).rstrip()

    title = style.words(evidence.name) + (f" ({style.words(evidence.how)})" if evidence.how else "")
    out = wrapped_inside(title, style) if title else []
    out += [style.paint(line(head), "bold"), *map(line, rows)]
    if len(evidence.rows) > _ROWS:
        more = len(evidence.rows) - _ROWS
        out.append(
            style.say(f"… {more} more rows: --format json", f"… 还有 {more} 行：--format json")
        )
    if len(widths) < len(head):
        more = len(head) - len(widths)
        out.append(
            style.say(f"… {more} more columns: --format html", f"… 还有 {more} 列：--format html")
        )
    return out


_NARROWEST = 12
"""Columns of a terminal that a cell keeps when a table is too wide."""


def _fitted(widths: list[int], style: Style) -> list[int]:
    """Widths within the terminal's: wide columns are cut, and what still does not fit is left out."""
    room = style.width - 8 if style.width else 0
    if not room:
        return widths
    widths = list(widths)
    while sum(widths) + 2 * (len(widths) - 1) > room:
        widest = max(range(len(widths)), key=lambda i: widths[i])
        if widths[widest] > _NARROWEST:
            widths[widest] -= 1
        elif len(widths) > 1:
            widths.pop()
        else:
            break
    return widths


def _pad(cell: str, width: int, right: bool) -> str:
    room = " " * (width - cells(cell))
    return room + cell if right else cell + room


def html(evidence: Table, style: Style) -> str:
    head = "".join(f"<th>{markup(name)}</th>" for name in evidence.columns)
    units = _units(evidence)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="n" data-value="{c}">{escape(_shown(c, unit, style))}</td>'
            if _is_number(c)
            else f"<td>{markup(c) if isinstance(c, Text) else escape(_shown(c, unit, style))}</td>"
            for c, unit in zip(row, units, strict=True)
        )
        + "</tr>"
        for row in evidence.rows[:500]
    )
    caption = markup(joined(evidence.name, *((" – ", evidence.how) if evidence.how else ())))
    inner = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    if len(evidence.rows) > _LONG:  # a long table is there when it is wanted
        count = f" ({len(evidence.rows)})"
        return (
            f'<details class="more"><summary>{caption}{count}</summary>'
            f'<div class="scroll"><table class="sortable">{inner}</details>'
        )
    return f'<p class="caption">{caption}</p><div class="scroll"><table class="sortable">{inner}'
