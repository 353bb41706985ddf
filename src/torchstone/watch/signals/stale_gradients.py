"""Gradients of an earlier step that the new ones are added to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "stale_gradients",
    phase="call",
    of="run",
    title=Text("stale gradients", "残留梯度"),
    why=Text(
        "gradients were not cleared after the optimizer step, so the next backward pass adds to them: every update contains all earlier gradients again",
        "优化器更新后没有清空梯度，下一次反向传播累加在其上：每次更新都重复包含之前的全部梯度",
    ),
    remedy=Text(
        "call optimizer.zero_grad() after each step", "每次 step 之后调用 optimizer.zero_grad()"
    ),
    severity=Severity.HIGH,
)


@SIGNAL.on_call
def stale(call: TrainingCall) -> Iterator[Alarm]:
    if call.backward.stale:
        yield Alarm(
            SIGNAL.name,
            Text(
                f"stale_gradients: backward adds to gradients of an earlier step, "
                f"'{call.backward.stale}' among them; zero_grad is missing",
                f"stale_gradients：反向传播累加到了之前步骤的梯度上（如 '{call.backward.stale}'），"
                "缺少 zero_grad",
            ),
            call.backward.stale,
        )


def fault(toy: Any) -> None:
    """zero_grad is not called any more."""
    toy.zero_grad = False
