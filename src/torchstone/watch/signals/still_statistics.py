"""Running statistics of batch norm that stand still in training mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.beat import Call
from torchstone.watch.signal import Alarm, Signal

SIGNAL = Signal(
    "still_statistics",
    phase="call",
    of="run",
    title=Text("running statistics stand still", "运行统计量不更新"),
    why=Text(
        "training uses the batch's own statistics, evaluation the running ones: the loss looks right and the model will not",
        "训练使用当前批次的统计量，评估使用运行统计量：loss 正常，模型却不对",
    ),
    remedy=Text(
        "check the momentum of batch norm, and what overwrites or restores its buffers",
        "检查 batch norm 的 momentum，以及是否有代码覆盖或还原其缓冲区",
    ),
    severity=Severity.HIGH,
)

_IN_A_ROW = 10


@SIGNAL.on_call
def still(call: Call) -> Iterator[Alarm]:
    if not call.backwards or not call.statistics:
        return
    before = call.memory.get("statistics")
    call.memory["statistics"] = call.statistics
    same = isinstance(before, dict) and any(
        before.get(name) == value for name, value in call.statistics.items()
    )
    row = int(call.memory.get("statistics_row", 0)) + 1 if same else 0  # type: ignore[call-overload]
    call.memory["statistics_row"] = row
    if row >= _IN_A_ROW and isinstance(before, dict):
        name = next(n for n, value in call.statistics.items() if before.get(n) == value)
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
