"""What one tensor holds."""

from __future__ import annotations

from torchstone.core.pictures import Table, TensorStats
from torchstone.core.text import Text
from torchstone.render.draw import _scale, table
from torchstone.render.style import Style, joined, printable


def _title(evidence: TensorStats) -> Text:
    shape = "×".join(map(str, evidence.shape)) or "scalar"
    return joined(evidence.name, f" [{shape}] {evidence.dtype}")


def text(evidence: TensorStats, style: Style) -> list[str]:
    stats = ", ".join(f"{key} {_scale.number(value)}" for key, value in evidence.stats.items())
    how = f" ({style.words(evidence.how)})" if evidence.how else ""
    return [printable(f"{style.words(_title(evidence))}: {stats}{how}")]


def html(evidence: TensorStats, style: Style) -> str:
    row = tuple(evidence.stats.values())
    return table.html(Table(_title(evidence), tuple(evidence.stats), (row,), evidence.how), style)
