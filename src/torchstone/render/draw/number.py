"""One value with its unit."""

from __future__ import annotations

from torchstone.core.evidence import Number
from torchstone.render.draw import _scale
from torchstone.render.markup import escape, markup
from torchstone.render.style import Style, printable


def _shown(evidence: Number) -> str:
    spread = f" ± {_scale.number(evidence.spread)}" if evidence.spread is not None else ""
    return f"{_scale.number(evidence.value)}{spread} {evidence.unit}".rstrip()


def text(evidence: Number, style: Style) -> list[str]:
    return [
        printable(f"{style.words(evidence.name)}: {_shown(evidence)} ({style.words(evidence.how)})")
    ]


def html(evidence: Number, style: Style) -> str:
    return (
        f'<p class="number"><b>{markup(evidence.name)}</b> {escape(_shown(evidence))} '
        f"<small>{markup(evidence.how)}</small></p>"
    )
