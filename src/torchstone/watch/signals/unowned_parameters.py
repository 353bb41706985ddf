"""Parameters that get gradients and belong to no optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "unowned_parameters",
    phase="call",
    of="run",
    title=Text("parameters in no optimizer", "不属于任何优化器的参数"),
    why=Text("these parameters get gradients and are never updated", "这些参数有梯度，却从不更新"),
    remedy=Text(
        "create the optimizer after the model is complete, or set requires_grad=False on what should not be trained",
        "在模型构建完成后再创建优化器，或对不训练的部分设置 requires_grad=False",
    ),
    severity=Severity.HIGH,
)


@SIGNAL.on_call
def unowned(call: TrainingCall) -> Iterator[Alarm]:
    if call.unowned:
        yield Alarm(
            SIGNAL.name,
            Text(
                f"unowned_parameters: {len(call.unowned)} parameter(s) get gradients and are in no "
                f"optimizer, first '{call.unowned[0]}'",
                f"unowned_parameters：{len(call.unowned)} 个参数有梯度却不属于任何优化器，"
                f"首个为 '{call.unowned[0]}'",
            ),
            call.unowned[0],
            float(len(call.unowned)),
        )


def fault(toy: Any) -> None:
    """The last layer is replaced after the optimizer was made."""
    toy.replace_last_layer()
