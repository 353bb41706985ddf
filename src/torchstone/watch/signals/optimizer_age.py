"""An optimizer that has forgotten what it knew, or how long it has been at work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.text import Text
from torchstone.watch.beat import Beat
from torchstone.watch.signal import Alarm, Signal

SIGNAL = Signal(
    "optimizer_age",
    phase="gradient",
    of="run",
    title=Text("steps that the optimizer remembers", "优化器记得的步数"),
    why=Text(
        "Adam corrects its averages by its count of steps: a count or a state that is lost makes steps of another size for a thousand steps, which the loss may not show",
        "Adam 按步数修正其平均值：计数或状态丢失会使之后上千步的步长都不对，而 loss 可能看不出来",
    ),
    remedy=Text(
        "look for what resets or replaces optimizer.state; load the state together with the weights",
        "查找重置或替换 optimizer.state 的代码；与权重一起加载优化器状态",
    ),
)


@SIGNAL.on_beat
def forgot(beat: Beat) -> Iterator[Alarm]:
    before = beat.memory.get("age")
    beat.memory["age"] = beat.age
    if not isinstance(before, (int, float)) or beat.age >= before:
        return
    if beat.age < 0:
        en, zh = "its state is gone", "状态已丢失"
    else:
        en, zh = f"its count fell from {before:.0f} to {beat.age:.0f}", f"计数从 {before:.0f} 退到 {beat.age:.0f}"  # fmt: skip
    yield Alarm(SIGNAL.name, Text(f"optimizer_age: {en}", f"optimizer_age：{zh}"), value=beat.age)


def fault(toy: Any) -> None:
    """The counters of Adam start again, its averages stay."""
    for state in toy.optimizer.state.values():
        state["step"].zero_()
