"""Backward passes run, and no optimizer steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.signal import Alarm, Signal

SIGNAL = Signal(
    "idle_optimizer",
    phase="call",
    of="run",
    title=Text("no optimizer step", "没有优化器更新"),
    why=Text(
        "gradients are computed and never used: nothing is learned",
        "梯度算出后没有被使用：什么也没学到",
    ),
    remedy=Text(
        "check that optimizer.step() is called; with gradient accumulation, check its condition",
        "检查是否调用了 optimizer.step()；使用梯度累积时检查其条件",
    ),
    severity=Severity.HIGH,
)


_PATIENCE = 16
_AT_FIRST = 130  # accumulation over many calls is known once the first step has come


@SIGNAL.on_call
def idle(call: TrainingCall) -> Iterator[Alarm]:
    since = int(call.memory.get("idle", 0))  # type: ignore[call-overload]
    longest = int(call.memory.get("idle_longest", 0))  # type: ignore[call-overload]
    if call.updates or call.skipped:
        call.memory["idle_longest"] = max(longest, since)
        call.memory["stepped"] = True
        call.memory["idle"] = 0
        return
    if not call.backward.count:
        return
    call.memory["idle"] = since + 1
    stepped = bool(call.memory.get("stepped"))
    if since + 1 > (max(_PATIENCE, 2 * longest) if stepped else _AT_FIRST):
        yield Alarm(
            SIGNAL.name,
            Text(
                f"idle_optimizer: {since + 1} steps in a row had a backward pass and no optimizer "
                f"step (at most {longest} before)",
                f"idle_optimizer：连续 {since + 1} 步有反向传播而没有优化器更新（此前最多 {longest} 步）",
            ),
            value=float(since + 1),
        )


def fault(toy: Any) -> None:
    """optimizer.step() is not called any more."""
    toy.steps = False
