"""The same batch again and again, where batches used to differ."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "repeated_batch",
    phase="call",
    of="run",
    title=Text("repeated batch", "重复的批次"),
    why=Text(
        "the data loader returns the same batch again and again: the model memorises it while the loss looks better than ever",
        "数据加载器反复返回同一批数据：模型将其记住，而 loss 看起来前所未有地好",
    ),
    remedy=Text(
        "check the loader's iterator, its workers and the sampler",
        "检查数据加载器的迭代器、worker 进程和采样器",
    ),
    severity=Severity.MEDIUM,
)


_IN_A_ROW = 4
_KNOWN = 10
_RECENT = 64
_AGAIN = 8
_HABIT = 0.1


@SIGNAL.on_call
def repeated(call: TrainingCall) -> Iterator[Alarm]:
    if not call.batch.digest:
        return
    last = call.memory.setdefault("batches", OrderedDict())
    assert isinstance(last, OrderedDict)
    same = next(reversed(last), None) == call.batch.digest
    known = last.pop(call.batch.digest, None) is not None
    last[call.batch.digest] = call.step
    if len(last) > _RECENT:
        last.popitem(last=False)
    if call.step <= _KNOWN and same:
        call.memory["batch_habit"] = True  # one batch on purpose, from the start
    if call.step <= _RECENT and known:
        call.memory["batch_epochs"] = True  # few batches, again and again from the start
    row = _count(call, "batch_row", same)
    again = _count(call, "batch_again", known)
    often = int(call.memory.get("batch_known", 0))  # type: ignore[call-overload]
    call.memory["batch_known"] = often + known
    if row >= _IN_A_ROW and not call.memory.get("batch_habit"):
        yield _alarm(row + 1, f"the same batch {row + 1} times in a row", f"同一批次连续出现 {row + 1} 次")  # fmt: skip
    elif (
        again >= _AGAIN
        and again > row
        and often - again < _HABIT * call.step
        and not call.memory.get("batch_epochs")
    ):
        yield _alarm(again, f"{again} batches in a row were seen in the last {_RECENT} steps", f"连续 {again} 个批次都在最近 {_RECENT} 步出现过")  # fmt: skip


def _count(call: TrainingCall, name: str, more: bool) -> int:
    count = int(call.memory.get(name, 0)) + 1 if more else 0  # type: ignore[call-overload]
    call.memory[name] = count
    return count


def _alarm(value: int, en: str, zh: str) -> Alarm:
    return Alarm(
        SIGNAL.name, Text(f"repeated_batch: {en}", f"repeated_batch：{zh}"), value=float(value)
    )


def fault(toy: Any) -> None:
    """The loader gives the same batch for ever."""
    kept = toy.next_batch()
    toy.transform = lambda *_: kept
