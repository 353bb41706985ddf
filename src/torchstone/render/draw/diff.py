"""A unified diff in red and green."""

from __future__ import annotations

from torchstone.core.evidence import Diff
from torchstone.render.style import Style, printable

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_CLASSES = {"+": "added", "-": "removed", "@": "hunk"}


def text(evidence: Diff, style: Style) -> list[str]:
    out: list[str] = []
    for row in evidence.text.rstrip("\n").split("\n"):
        colour = _COLOURS.get(row[:1])
        out.append(style.paint(printable(row), colour) if colour else printable(row))
    return out


def html(evidence: Diff, style: Style) -> str:
    from torchstone.render.markup import escape  # the terminal does without it

    rows = (
        f'<span class="{_CLASSES.get(row[:1], "")}">{escape(row)}\n</span>'
        for row in evidence.text.rstrip("\n").split("\n")
    )
    return f'<pre class="diff">{"".join(rows)}</pre>'
