"""The same batch again and again, where batches used to differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.beat import Call
from torchstone.watch.signal import Alarm, Signal

SIGNAL = Signal(
    "repeated_batch",
    phase="call",
    of="run",
    title=Text("repeated batch", "重复的批次"),
    why=Text(
        "a stuck loader: the model learns one batch by heart while the loss looks better than ever",
        "数据加载卡住：模型背下同一批数据，而 loss 看起来前所未有地好",
    ),
    remedy=Text(
        "check the loader's iterator, its workers and the sampler",
        "检查数据加载器的迭代器、工作进程和采样器",
    ),
    severity=Severity.MEDIUM,
)


_IN_A_ROW = 4
_KNOWN = 10


@SIGNAL.on_call
def repeated(call: Call) -> Iterator[Alarm]:
    if not call.batch_digest:
        return
    same = call.memory.get("batch") == call.batch_digest
    call.memory["batch"] = call.batch_digest
    row = int(call.memory.get("batch_row", 0)) + 1 if same else 0  # type: ignore[call-overload]
    call.memory["batch_row"] = row
    if call.step <= _KNOWN and same:
        call.memory["batch_habit"] = True  # one batch on purpose, from the start
    if row >= _IN_A_ROW and not call.memory.get("batch_habit"):
        yield Alarm(
            SIGNAL.name,
            Text(
                f"repeated_batch: the same batch {row + 1} times in a row",
                f"repeated_batch：同一批次连续出现 {row + 1} 次",
            ),
            value=float(row + 1),
        )


def fault(toy: Any) -> None:
    """The loader gives the same batch for ever."""
    kept = toy.next_batch()
    toy.transform = lambda *_: kept
