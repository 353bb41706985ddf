"""One kind of evidence, one file: how it looks in a terminal and in HTML.

Each file is named after its kind and has `text(evidence, style) -> list[str]` and
`html(evidence, style) -> str`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from torchstone.render.style import Style

if TYPE_CHECKING:
    from torchstone.core.pictures import Evidence


def text(evidence: Evidence, style: Style) -> list[str]:
    """The lines that show a piece of evidence in a terminal."""
    lines: list[str] = _drawer(evidence).text(evidence, style)
    return lines


def html(evidence: Evidence, style: Style) -> str:
    """The markup that shows a piece of evidence in a page."""
    markup: str = _drawer(evidence).html(evidence, style)
    return markup


def _drawer(evidence: Evidence):  # type: ignore[no-untyped-def]
    return importlib.import_module(f"torchstone.render.draw.{evidence.kind}")
