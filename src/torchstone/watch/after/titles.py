"""What recorded columns are called, and measures of them."""

from __future__ import annotations

from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence
from torchstone.core.text import Text
from torchstone.watch.measure.signal import all_signals

RECORDED = Text("recorded", "来自记录")
_OTHERS = {
    "lr": Text("learning rate", "学习率"),
    "scale": Text("loss scale", "损失缩放"),
    "batch": Text("batch size", "批次大小"),
    "skipped": Text("skipped steps", "跳过的步"),
}


def column_title(column: str) -> Text:
    """A recorded column in words."""
    name = column.partition("[")[0]
    known = next((s.title for s in all_signals() if s.name == name), None)
    known = known or _OTHERS.get(name, Text(name, name))
    tail = column[len(name) :]
    return Text(known.en + tail, known.zh + tail)


def named_title(column: str) -> Text:
    """A recorded column in words, with the name that the [ALERT] lines use."""
    title = column_title(column)
    name = column.partition("[")[0]
    if title.en.startswith(name):
        return Text(title.en, f"{title.zh}（{name}）")
    return Text(f"{title.en} ({name})", f"{title.zh}（{name}）")


def measure(
    name: str, value: float, unit: str, label: Text, evidence: tuple[Evidence, ...] = (),
    how: Text = RECORDED,
) -> Measure:  # fmt: skip
    """A measure of a run."""
    return Measure(name, value, unit, how, label, evidence=evidence, tool="watch")
