"""Input features that have become constant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "dead_inputs",
    phase="call",
    of="run",
    title=Text("constant input features", "恒定的输入特征"),
    why=Text(
        "a feature or channel with the same value in every sample carries no information: the model learns to ignore it, and the loss hardly shows it",
        "在所有样本中取值相同的特征或通道不含信息：模型会学着忽略它，而 loss 几乎看不出来",
    ),
    remedy=Text(
        "check how this feature is loaded and transformed: filled with zeros, dropped, or lost in a join",
        "检查该特征的加载与变换：是否被填零、丢弃，或在关联时丢失",
    ),
)

_KNOWN = 20
_IN_A_ROW = 3


@SIGNAL.on_call
def dead(call: TrainingCall) -> Iterator[Alarm]:
    if call.input.dead is None:
        return
    most = int(call.memory.get("dead_inputs", 0))  # type: ignore[call-overload]
    if call.step <= _KNOWN:
        call.memory["dead_inputs"] = max(most, call.input.dead)
        return
    row = int(call.memory.get("dead_row", 0)) + 1 if call.input.dead > most else 0  # type: ignore[call-overload]
    call.memory["dead_row"] = row
    if row >= _IN_A_ROW:
        yield Alarm(
            SIGNAL.name,
            Text(
                f"dead_inputs: {call.input.dead} input feature(s) hold one value in {row} batches that were looked at "
                f"({most} before)",
                f"dead_inputs：查看的 {row} 个批次中有 {call.input.dead} 个输入特征取值恒定（此前 {most} 个）",
            ),
            value=float(call.input.dead),
        )


def fault(toy: Any) -> None:
    """One feature is filled with zeros."""

    def blank(x: Any, y: Any) -> Any:
        x = x.clone()
        x[:, 3] = 0
        return x, y

    toy.transform = blank
