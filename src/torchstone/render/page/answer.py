"""The first screen: one sentence, what was looked at, tiles, pictures, and what to do next."""

from __future__ import annotations

from itertools import groupby

from torchstone.core.answer import Answer, Tile
from torchstone.core.pictures import Evidence
from torchstone.core.report import Report
from torchstone.core.text import words
from torchstone.render import draw
from torchstone.render.markup import escape, markup
from torchstone.render.page.header import say
from torchstone.render.style import Style

_SIGNS = {"good": "✓", "bad": "✗", "warning": "!", "plain": ""}


def answer_section(report: Report, style: Style) -> str:
    """The answer of a report; nothing where its findings are the answer."""
    answer = report.answer
    if answer is None:
        return ""
    warnings = "".join(f'<p class="warning">{markup(item)}</p>' for item in answer.warnings)
    lines = "".join(f"<li>{markup(item)}</li>" for item in answer.lines)
    return (
        f'<section class="answer {answer.state}">{warnings}'
        f'<p class="headline"><b aria-hidden="true">{_SIGNS[answer.state]}</b> {markup(answer.headline)}</p>'
        f"{_about(answer)}{_tiles(answer.tiles)}"
        f"{f'<ul class=lines>{lines}</ul>' if lines else ''}"
        f"{pictures(answer.pictures, style)}{_assumptions(answer)}{_next(answer)}</section>"
    )


def _about(answer: Answer) -> str:
    rows = "".join(
        f"<div><dt>{markup(fact.label)}</dt><dd>{markup(fact.value)}</dd></div>"
        for fact in answer.about
    )
    return f'<dl class="about">{rows}</dl>' if rows else ""


def _tiles(tiles: tuple[Tile, ...]) -> str:
    shown = "".join(
        f'<div class="tile {tile.state}"><span>{markup(tile.label)}</span><b>{markup(tile.value)}</b>'
        f"{f'<small>{markup(tile.note)}</small>' if words(tile.note, 'en') else ''}</div>"
        for tile in tiles
    )
    return f'<div class="tiles">{shown}</div>' if shown else ""


def pictures(evidence: tuple[Evidence, ...], style: Style) -> str:
    """Pictures one below the other; several plots in a row share a grid and a crosshair."""
    parts: list[str] = []
    for kind, group in groupby(evidence, key=lambda item: item.kind):
        shown = [draw.html(item, style) for item in group]
        grid = kind == "plot" and len(shown) > 1
        parts.append(f'<div class="grid">{"".join(shown)}</div>' if grid else "".join(shown))
    return "".join(parts)


def _assumptions(answer: Answer) -> str:
    if not answer.assumptions:
        return ""
    rows = "".join(f"<li>{markup(item)}</li>" for item in answer.assumptions)
    count = len(answer.assumptions)
    title = say(f"Assumptions ({count})", f"假设（{count}）")
    return f'<details class="more assumptions"><summary>{title}</summary><ul>{rows}</ul></details>'


def _next(answer: Answer) -> str:
    if not answer.next:
        return ""
    rows = "".join(
        f'<span class="run" data-copy="{escape(line, quote=True)}"><code>{escape(line)}</code></span>'
        for line in answer.next
    )
    return f'<p class="next"><span>{say("Next:", "下一步：")}</span> {rows}</p>'
