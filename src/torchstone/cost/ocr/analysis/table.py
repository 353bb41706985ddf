"""A table of modules in the layout that fvcore made known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_HEADS = ("module", "#parameters", "#flops", "#activations")


def module_table(full: Mapping[str, Any], max_depth: int = 3) -> str:
    """The modules of a whole pass, each indented by its depth."""
    rows = []
    for path, flops in full["by_module"].items():
        depth = path.count(".") + 1 if path else 0
        parameters = full["params"].get(path, 0)
        if depth > max_depth or not (flops or parameters):
            continue
        figures = (parameters, flops, full["acts_by_module"].get(path, 0.0))
        rows.append(_indented(path or "model", figures, depth))
    return _laid_out(rows)


def stage_table(report: Mapping[str, Any], max_depth: int = 3) -> str:
    """The stages of a report; there is one level, so that the depth changes nothing."""
    del max_depth
    total = report["total"]
    rows = [_indented("model", (total["params"], total["flops"], total["activations"]), 0)]
    for name, stage in report["stages"].items():
        figures = (stage["params"], stage["flops"], stage["activations"])
        rows.append(_indented(name, figures, 1))
    return _laid_out(rows)


def size_text(value: float) -> str:
    """Three figures and a letter: 34.6M, 0.226M, 16."""
    for limit, letter in ((1e11, "T"), (1e8, "G"), (1e5, "M"), (1e2, "K")):
        if abs(value) >= limit:
            return f"{value / (limit * 10):.3g}{letter}"
    return f"{value:g}" if value else ""


def _indented(name: str, figures: tuple[float, ...], depth: int) -> list[str]:
    indent = " " * depth
    return [indent + name, *(indent + text if (text := size_text(v)) else "" for v in figures)]


def _laid_out(rows: list[list[str]]) -> str:
    widths = [
        max(len(head), *(len(row[column]) for row in rows)) if rows else len(head)
        for column, head in enumerate(_HEADS)
    ]
    rule = "|".join(":" + "-" * (width + 1) for width in widths)
    lines = [_line(_HEADS, widths), f"|{rule}|", *(_line(row, widths) for row in rows)]
    return "\n".join(lines)


def _line(cells: Any, widths: list[int]) -> str:
    shown = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(shown)} |"
