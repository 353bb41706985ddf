"""The loss itself is NaN or infinite."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "loss_not_finite",
    phase="call",
    of="run",
    title=Text("loss is NaN or infinite", "损失为 NaN 或无穷大"),
    why=Text(
        "the forward pass already produced a non-finite value, before any gradient was computed",
        "在计算梯度之前，前向传播就已产生非有限值",
    ),
    remedy=Text(
        "inspect the inputs of this step and every log, division, sqrt and exp in the forward pass",
        "检查该步的输入，以及前向中的每个 log、除法、sqrt 和 exp",
    ),
    severity=Severity.HIGH,
)


@SIGNAL.on_call
def not_finite(call: TrainingCall) -> Iterator[Alarm]:
    if call.loss is not None and not math.isfinite(call.loss):
        yield Alarm(
            SIGNAL.name,
            Text(f"loss: {call.loss} | phase: forward", f"loss: {call.loss} | 阶段：前向"),
            value=call.loss,
        )


def fault(toy: Any) -> None:
    """The forward pass takes the logarithm of a negative number."""
    toy.transform = lambda x, y: (-x.abs().log().log(), y)
