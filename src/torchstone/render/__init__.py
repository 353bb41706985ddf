"""A report becomes one output format; each format is one file here, found by its name."""

from __future__ import annotations

import importlib

from torchstone.core.options import unknown
from torchstone.core.registry import names_in
from torchstone.core.report import Report
from torchstone.render.style import Style

_HELPERS = frozenset(("draw", "markup", "order", "page", "style", "words"))


def formats() -> list[str]:
    """The names of the output formats."""
    return [name for name in names_in("torchstone.render") if name not in _HELPERS]


def render(report: Report, format: str, **style: object) -> str:
    """The report as a string in one format."""
    if format not in formats():
        raise unknown("--format", format, formats())
    module = importlib.import_module(f"torchstone.render.{format}")
    text: str = module.render(report, Style(**style))  # type: ignore[arg-type]
    return text
