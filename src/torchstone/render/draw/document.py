"""A longer text, folded, with a button that copies it."""

from __future__ import annotations

import hashlib

from torchstone.core.evidence import Diff
from torchstone.core.pictures import Document
from torchstone.core.text import words
from torchstone.render.draw import diff
from torchstone.render.markup import escape, markup
from torchstone.render.style import Style, printable

_LINES = 200


def anchor(name: str) -> str:
    """The name of a document as an id in a page."""
    return "d-" + hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def text(evidence: Document, style: Style) -> list[str]:
    note = f" ({style.words(evidence.note)})" if style.words(evidence.note) else ""
    rows = evidence.text.rstrip("\n").split("\n")
    lines = [printable(f"── {style.words(evidence.name)}{note}"), *map(printable, rows[:_LINES])]
    if len(rows) > _LINES:
        more = len(rows) - _LINES
        lines.append(style.say(f"… {more} more lines", f"… 还有 {more} 行"))
    return lines


def html(evidence: Document, style: Style) -> str:
    from torchstone.render.draw._syntax import coloured  # the terminal does without it

    if evidence.language == "diff":
        body = diff.html(Diff(evidence.text), style)
    else:
        inner = coloured(evidence.text) if evidence.language == "python" else escape(evidence.text)
        body = f'<pre class="document">{inner}</pre>'
    note = f" <small>{markup(evidence.note)}</small>" if words(evidence.note, "en") else ""
    return (
        f'<details class="more {evidence.state}" id="{anchor(words(evidence.name, "en"))}"><summary>'
        f"{markup(evidence.name)}{note}</summary><div data-copy>{body}</div></details>"
    )
