"""Gradients that the narrow format cannot hold, and those one doubling away from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.measure.signal import Alarm, Signal
from torchstone.watch.measure.update import Update

SIGNAL = Signal(
    "overflow",
    phase="gradient",
    of="layer",
    title=Text("largest gradient relative to the format's maximum", "最大梯度与格式上限之比"),
    why=Text(
        "a value above the format's maximum becomes infinity in the cast, or is clamped in fp8",
        "超过格式上限的数值在转换时变为无穷大，fp8 则被截断",
    ),
    remedy=Text(
        "lower the loss scale, clip gradients, or use bf16 for this layer",
        "降低 loss scale、裁剪梯度，或对该层使用 bf16",
    ),
    severity=Severity.HIGH,
)


@SIGNAL.on_update
def overflow(update: Update) -> Iterator[Alarm]:
    if update.format.exponent_bits > 5 or update.scaled:
        return  # bf16 and fp32 do not get there; a loss scaler backs off by itself
    rows = update.reading.rows
    largest = rows["largest"]
    for i in np.flatnonzero(largest >= update.format.near_overflow)[:3]:
        over = int(rows["beyond"][i])
        kind = "overflow" if over else "near_overflow"
        yield Alarm(
            SIGNAL.name,
            Text(
                f"Layer '{update.watched.names[i]}' {kind}: largest gradient {largest[i]:.4g} of "
                f"{update.format.largest:.6g} in {update.format.name}",
                f"Layer '{update.watched.names[i]}' {kind}：最大梯度 {largest[i]:.4g}，"
                f"{update.format.name} 上限 {update.format.largest:.6g}",
            ),
            update.watched.names[i],
            float(largest[i]),
            Severity.HIGH if over else Severity.MEDIUM,
        )


def fault(toy: Any) -> None:
    """The loss is so large that gradients leave the range of fp16."""
    toy.narrow = "fp16"
    toy.loss_factor = 1e7
