"""An optimizer that has forgotten what it knew, or how long it has been at work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.text import Text
from torchstone.watch.measure.signal import Alarm, Signal
from torchstone.watch.measure.update import Update

SIGNAL = Signal(
    "optimizer_age",
    phase="gradient",
    of="run",
    title=Text("step count in the optimizer state", "优化器状态中的步数"),
    why=Text(
        "Adam uses its step count for bias correction: when the count or the state is lost, updates have the wrong size for about a thousand steps, which the loss may not show",
        "Adam 用步数做偏差修正：计数或状态丢失后，约一千步内更新的大小都不对，而 loss 可能看不出来",
    ),
    remedy=Text(
        "look for code that resets or replaces optimizer.state; load the optimizer state together with the weights",
        "查找重置或替换 optimizer.state 的代码；与权重一起加载优化器状态",
    ),
)


@SIGNAL.on_update
def forgot(update: Update) -> Iterator[Alarm]:
    before = update.memory.get("age")
    update.memory["age"] = update.age
    if not isinstance(before, (int, float)) or update.age >= before:
        return
    if update.age < 0:
        en, zh = "its state is gone", "状态已丢失"
    else:
        en, zh = f"its count fell from {before:.0f} to {update.age:.0f}", f"计数从 {before:.0f} 退到 {update.age:.0f}"  # fmt: skip
    yield Alarm(SIGNAL.name, Text(f"optimizer_age: {en}", f"optimizer_age：{zh}"), value=update.age)


def fault(toy: Any) -> None:
    """The counters of Adam start again, its averages stay."""
    for state in toy.optimizer.state.values():
        state["step"].zero_()
