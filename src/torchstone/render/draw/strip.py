"""Checks in their order: a row of marks."""

from __future__ import annotations

from torchstone.core.pictures import Strip
from torchstone.render.markup import escape, markup
from torchstone.render.style import Style, printable
from torchstone.render.words import COLOURS, MARKS


def text(evidence: Strip, style: Style) -> list[str]:
    shown = (
        style.paint(f"{MARKS[item.state]} {printable(style.words(item.name))}", COLOURS[item.state])
        for item in evidence.checks
    )
    return [printable(style.words(evidence.name)) + "  " + "  ".join(shown)]


def html(evidence: Strip, style: Style) -> str:
    items = "".join(
        f'<li class="{item.state}" title="{escape(style.words(item.note), quote=True)}">'
        f'<b aria-hidden="true">{MARKS[item.state]}</b> {markup(item.name)}</li>'
        for item in evidence.checks
    )
    return (
        f'<div class="strip"><p class="caption">{markup(evidence.name)}</p><ol>{items}</ol></div>'
    )
