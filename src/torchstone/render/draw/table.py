"""Rows under named columns."""

from __future__ import annotations

from html import escape

from torchstone.core.pictures import Cell, Table
from torchstone.render.draw import _scale
from torchstone.render.markup import markup
from torchstone.render.style import Style, cells, joined, printable

_ROWS = 40


def _shown(cell: Cell) -> str:
    if isinstance(cell, float):
        return _scale.number(cell)
    return "–" if cell is None else f"{cell:,}" if type(cell) is int else str(cell)


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def text(evidence: Table, style: Style) -> list[str]:
    rows = [[printable(_shown(cell)) for cell in row] for row in evidence.rows[:_ROWS]]
    head = [printable(name) for name in evidence.columns]
    widths = [max(cells(row[i]) for row in (head, *rows)) for i in range(len(head))]
    right = [all(_is_number(row[i]) for row in evidence.rows) for i in range(len(head))]

    def line(row: list[str]) -> str:
        parts = (_pad(cell, widths[i], right[i]) for i, cell in enumerate(row))
        return "  ".join(parts).rstrip()

    title = style.words(evidence.name) + (f" ({style.words(evidence.how)})" if evidence.how else "")
    out = [printable(title)] if title else []
    out += [style.paint(line(head), "bold"), *map(line, rows)]
    if len(evidence.rows) > _ROWS:
        more = len(evidence.rows) - _ROWS
        out.append(
            style.say(f"… {more} more rows: --format json", f"… 还有 {more} 行：--format json")
        )
    return out


def _pad(cell: str, width: int, right: bool) -> str:
    room = " " * (width - cells(cell))
    return room + cell if right else cell + room


def html(evidence: Table, style: Style) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in evidence.columns)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="n">{escape(_shown(c))}</td>'
            if _is_number(c)
            else f"<td>{escape(_shown(c))}</td>"
            for c in row
        )
        + "</tr>"
        for row in evidence.rows[:500]
    )
    caption = markup(joined(evidence.name, *((" – ", evidence.how) if evidence.how else ())))
    return (
        f'<div class="scroll"><table><caption>{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
