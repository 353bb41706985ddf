"""Backward passes whose gradients are thrown away before the optimizer steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "lost_passes",
    phase="call",
    of="run",
    title=Text("backward passes that are not accumulated", "未被累积的反向传播"),
    why=Text(
        "several backward passes run before each step, but only the last one is left in the gradients: the rest of the work is lost, and the effective batch is smaller than intended",
        "每次更新前有多次反向传播，但梯度中只剩最后一次：其余计算被浪费，实际批次小于预期",
    ),
    remedy=Text(
        "call optimizer.zero_grad() once per step, not once per micro-batch",
        "每次 step 只调用一次 optimizer.zero_grad()，而不是每个微批次都调用",
    ),
)

_IN_A_ROW = 2  # after they used to add up
_FROM_THE_START = 8


@SIGNAL.on_call
def lost(call: TrainingCall) -> Iterator[Alarm]:
    if not call.backward.passes or call.backward.lost is None or not call.alone:
        return
    memory = call.memory
    if not call.backward.lost:
        memory["passes_kept"], memory["passes_lost"] = True, 0
        return
    row = memory["passes_lost"] = int(memory.get("passes_lost", 0)) + 1  # type: ignore[call-overload]
    if row >= (_IN_A_ROW if memory.get("passes_kept") else _FROM_THE_START):
        yield Alarm(
            SIGNAL.name,
            Text(
                f"lost_passes: {call.backward.passes} backward passes before a step, and only the last is in "
                f"the gradients ({row} steps looked at)",
                f"lost_passes：更新前有 {call.backward.passes} 次反向传播，但梯度中只剩最后一次"
                f"（已查看 {row} 步）",
            ),
            value=float(call.backward.passes),
        )


def fault(toy: Any) -> None:
    """Two micro-batches, and the gradients are cleared before each."""
    train = toy.train_step

    def twice(batch: Any) -> Any:
        toy.steps = False
        train(batch)
        toy.steps = True
        return train(batch)

    toy.train_step = twice
