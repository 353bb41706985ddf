"""Weights that something other than the optimizer changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.signal import Alarm, Signal
from torchstone.watch.measure.update import Update

SIGNAL = Signal(
    "changed_outside",
    phase="gradient",
    of="layer",
    title=Text("weights changed outside the optimizer", "权重在优化器之外被修改"),
    why=Text(
        "training continues from weights that no optimizer step produced: an EMA copy written back, a wrong checkpoint, or an in-place operation by mistake",
        "训练从并非由优化器得到的权重继续：写回的 EMA 副本、错误的检查点或误用的原地操作",
    ),
    remedy=Text(
        "search for writes to `.data`, copies from an averaged model, and load_state_dict calls between steps",
        "查找对 `.data` 的写入、从 EMA 模型的拷贝，以及步与步之间的 load_state_dict",
    ),
    severity=Severity.MEDIUM,
)


_KNOWN = 10
_HABIT = 0.2  # weight clipping after every step is how some programs work


@SIGNAL.on_update
def changed(update: Update) -> Iterator[Alarm]:
    outside = update.outside
    if outside is None:
        return
    count = int(np.count_nonzero(outside))
    often = int(update.memory.get("outside", 0))  # type: ignore[call-overload]
    update.memory["outside"] = often + bool(count)
    if not count or update.number < _KNOWN or often > _HABIT * update.number:
        return
    name = update.watched.names[int(outside.argmax())]
    yield Alarm(
        SIGNAL.name,
        Text(
            f"changed_outside: {count} parameter(s) changed since the last optimizer step, "
            f"first '{name}'",
            f"changed_outside：自上次优化器更新后有 {count} 个参数被改动，首个为 '{name}'",
        ),
        name,
        float(count),
    )


def fault(toy: Any) -> None:
    """The weights of one layer are halved between two steps."""
    toy.model[4].weight.data.mul_(0.5)
