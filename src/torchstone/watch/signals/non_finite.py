"""NaN or infinity in a gradient, in the loss or in a weight: which parameter first, and in which pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.signal import Alarm, Signal
from torchstone.watch.measure.update import Update

SIGNAL = Signal(
    "non_finite",
    phase="gradient",
    of="layer",
    title=Text("NaN or infinity in the gradients", "梯度中有 NaN 或无穷大"),
    why=Text(
        "a NaN gradient reaches the weights with the next step, and they do not recover from it",
        "NaN 梯度会在下一次更新时进入权重，且无法恢复",
    ),
    remedy=Text(
        "stop and go back to the last checkpoint; inspect the parameter named here and the batch of this step",
        "停止训练并回到最近的检查点；检查此处指出的参数和该步的批次",
    ),
    severity=Severity.HIGH,
)


@SIGNAL.on_update
def non_finite(update: Update) -> Iterator[Alarm]:
    if update.finite:
        return
    rows = update.reading.rows
    bad = np.flatnonzero((rows["nan"] > 0) | (rows["infinite"] > 0))
    if torch.float64 in update.watched.dtypes:  # read as fp32, which overflows earlier
        bad = np.array([i for i in bad if _is_bad(update.watched.parameters[i].grad)], np.int64)
    if not len(bad) or (update.scaled and not _lasting(update)):
        return
    # Backward runs from the output to the input: the last bad layer with healthy ones after it
    # went wrong first. A loss that was bad already makes all of them bad.
    first = int(bad[-1])
    every = len(bad) == int(update.reading.present.sum())
    name = update.watched.names[first]
    phase = ("forward", "前向") if every else ("backward", "反向")
    yield Alarm(
        SIGNAL.name,
        Text(
            f"non_finite: {len(bad)} of {len(rows)} gradients hold NaN or Inf, "
            f"first '{name}' in {phase[0]}",
            f"non_finite：{len(rows)} 个梯度中有 {len(bad)} 个含 NaN 或 Inf，"
            f"最先出现在{phase[1]}的 '{name}'",
        ),
        name,
        float(len(bad)),
    )


def _is_bad(gradient: torch.Tensor | None) -> bool:
    return gradient is not None and not bool(gradient.isfinite().all())


def _lasting(update: Update) -> bool:
    """A loss scaler meets infinities now and then; twenty in a row are not normal."""
    count = int(update.memory.get("non_finite", 0)) + 1  # type: ignore[call-overload]
    last = update.memory.get("non_finite_beat", -9)
    count = count if last == update.number - 1 else 1
    update.memory["non_finite"] = count
    update.memory["non_finite_beat"] = update.number
    return count >= 20


def fault(toy: Any) -> None:
    """A NaN appears in the input."""
    toy.transform = lambda x, y: (x * float("nan"), y)
