"""Running statistics of batch norm that stand still in training mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "still_statistics",
    phase="call",
    of="run",
    title=Text("running statistics are not updated", "运行统计量不更新"),
    why=Text(
        "training normalises with the statistics of the batch, evaluation with the running ones: the training loss is fine and the evaluation is wrong",
        "训练用当前批次的统计量归一化，评估用运行统计量：训练损失正常，评估结果却是错的",
    ),
    remedy=Text(
        "check the momentum of batch norm, and code that overwrites or restores its buffers",
        "检查 batch norm 的 momentum，以及覆盖或还原其 buffer 的代码",
    ),
    severity=Severity.HIGH,
)

_IN_A_ROW = 10


@SIGNAL.on_call
def still(call: TrainingCall) -> Iterator[Alarm]:
    if not call.backward.count or not call.backward.statistics:
        return
    before = call.memory.get("statistics")
    call.memory["statistics"] = call.backward.statistics
    same = isinstance(before, dict) and any(
        before.get(name) == value for name, value in call.backward.statistics.items()
    )
    row = int(call.memory.get("statistics_row", 0)) + 1 if same else 0  # type: ignore[call-overload]
    call.memory["statistics_row"] = row
    if row >= _IN_A_ROW and isinstance(before, dict):
        name = next(n for n, value in call.backward.statistics.items() if before.get(n) == value)
        yield Alarm(
            SIGNAL.name,
            Text(
                f"still_statistics: the running statistics of '{name}' have not moved in {row} steps "
                "of training",
                f"still_statistics：'{name}' 的运行统计量在 {row} 个训练步内没有变化",
            ),
            name,
            float(row),
        )


def fault(toy: Any) -> None:
    """The momentum of batch norm becomes zero."""
    toy.model[1].momentum = 0.0
