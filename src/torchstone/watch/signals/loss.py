"""The loss that the training function returns."""

from __future__ import annotations

import math
from typing import Any

from torchstone.core.text import Text
from torchstone.watch.learn.baselines import SETTLED_AFTER
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal

SIGNAL = Signal(
    "loss",
    phase="call",
    of="run",
    title=Text("loss", "损失"),
    why=Text(
        "a loss that jumps, climbs or collapses means that the data, the labels or the weights changed",
        "损失突跳、爬升或骤降，说明数据、标签或权重发生了变化",
    ),
    remedy=Text(
        "inspect the batch and labels of this step, then what changed since the last normal step",
        "检查该步的批次与标签，再检查自上一个正常步以来的改动",
    ),
    falls_from=SETTLED_AFTER,
    fades=True,
    high=8.0,  # more than any mixture of easy and hard batches makes of it
    limits=Limits(
        spike=(3.0, NEVER),
        shift=(1.1, 2.0),
        ramp=(1.25, NEVER),
        sigmas=8.0,
        shift_sigmas=6.0,
        fall_sigmas=11.0,
        floor=1e-6,
        spread=0.01,
    ),
)


@SIGNAL.measure
def loss(call: Any) -> float:
    """The loss, or a positive number that moves with it when losses have both signs."""
    value = call.loss
    if value is None or not math.isfinite(value):
        return math.nan
    memory = call.memory
    if value < 0 and "loss_unit" not in memory:
        memory["loss_unit"] = max(abs(value), float(memory.get("loss_seen", 0.0)), 1e-3)
    if "loss_unit" in memory:
        return math.exp(0.5 * math.asinh(value / memory["loss_unit"]))
    memory["loss_seen"] = max(float(memory.get("loss_seen", 0.0)), value)
    return float(value)


def fault(toy: Any) -> None:
    """Labels no longer belong to their inputs."""
    toy.transform = lambda x, y: (x, y.roll(1))
