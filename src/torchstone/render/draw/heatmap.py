"""A grid of values in shades."""

from __future__ import annotations

import math

from torchstone.core.pictures import Heatmap
from torchstone.render.draw import _scale
from torchstone.render.markup import escape, markup
from torchstone.render.style import Style, cells, joined, printable

_SHADES = " ░▒▓█"


def _share(value: float | None, low: float, high: float, log: bool) -> float | None:
    if value is None or not math.isfinite(value) or (log and value <= 0):
        return None
    if log:
        low, high, value = math.log(low), math.log(high), math.log(value)
    return (value - low) / ((high - low) or 1.0)


def _ends(evidence: Heatmap) -> tuple[float, float]:
    values = [v for row in evidence.values for v in _scale.finite(row) if not evidence.log or v > 0]
    return (min(values), max(values)) if values else (1.0, 1.0)


def text(evidence: Heatmap, style: Style) -> list[str]:
    low, high = _ends(evidence)
    width = max((cells(name) for name in evidence.rows), default=0)
    ends = f"{_scale.number(low)} … {_scale.number(high)} {evidence.unit}"
    lines = [printable(f"{style.words(evidence.name)}: {ends} ({style.words(evidence.how)})")]
    for name, row in zip(evidence.rows, evidence.values, strict=False):
        shares = (_share(value, low, high, evidence.log) for value in row)
        shades = "".join("·" if s is None else _SHADES[min(int(s * 5), 4)] for s in shares)
        lines.append(f"{printable(name)}{' ' * (width - cells(name))} {shades}")
    return lines


def html(evidence: Heatmap, style: Style) -> str:
    low, high = _ends(evidence)
    size, left = 14, 150
    parts: list[str] = []
    for y, (name, row) in enumerate(zip(evidence.rows, evidence.values, strict=False)):
        parts.append(
            f'<text x="{left - 6}" y="{y * size + 11}" text-anchor="end">{escape(name[-24:])}</text>'
        )
        for x, value in enumerate(row):
            share = _share(value, low, high, evidence.log)
            fill = "none" if share is None else "var(--heat)"
            column = evidence.columns[x] if x < len(evidence.columns) else ""
            parts.append(
                f'<rect x="{left + x * size}" y="{y * size}" width="{size - 1}" height="{size - 1}" fill="{fill}" '
                f'fill-opacity="{0.08 + 0.92 * (share or 0):.2f}" class="cell">'
                f"<title>{escape(name)} · {escape(column)}: {_scale.number(value)} {escape(evidence.unit)}</title></rect>"
            )
    columns = max((len(row) for row in evidence.values), default=0)
    ends = f": {_scale.number(low)} … {_scale.number(high)} {evidence.unit} – "
    caption = markup(joined(evidence.name, ends, evidence.how))
    return (
        f'<figure><figcaption>{caption}</figcaption><svg role="img" aria-label="{escape(style.words(evidence.name))}" '
        f'viewBox="0 0 {left + columns * size} {len(evidence.rows) * size}" '
        f'style="max-width:{left + columns * size}px">{"".join(parts)}</svg></figure>'
    )
