"""Layers that were in training mode and are in evaluation mode while gradients are taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "eval_mode",
    phase="call",
    of="run",
    title=Text("layers in eval mode during training", "训练时处于 eval 模式的层"),
    why=Text(
        "batch norm uses its running statistics and dropout is off: the model being trained is not the one before this step",
        "batch norm 使用运行统计量、dropout 关闭：训练的已不是此前的模型",
    ),
    remedy=Text("call model.train() after evaluation", "评估之后调用 model.train()"),
    severity=Severity.HIGH,
)


@SIGNAL.on_call
def in_eval(call: TrainingCall) -> Iterator[Alarm]:
    if not call.backward.count:
        return
    before = call.memory.get("eval_mode")
    if before is not None and call.backward.in_eval:
        new = [name for name in call.backward.in_eval if name not in before]  # type: ignore[operator]
        if new:
            yield Alarm(
                SIGNAL.name,
                Text(
                    f"eval_mode: {len(new)} layer(s) are in eval mode during backward, "
                    f"first '{new[0]}'",
                    f"eval_mode：反向传播时有 {len(new)} 层处于 eval 模式，首个为 '{new[0]}'",
                ),
                new[0],
                float(len(new)),
            )
            return  # the mode before it stays the rule
    call.memory["eval_mode"] = frozenset(call.backward.in_eval)


def fault(toy: Any) -> None:
    """model.eval() is called, and model.train() is forgotten."""
    toy.model.eval()
