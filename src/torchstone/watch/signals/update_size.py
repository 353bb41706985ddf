"""How far a step moves all weights, against their size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.update import Update
from torchstone.watch.measure.updates import Updates

SIGNAL = Signal(
    "update_size",
    phase="update",
    of="run",
    title=Text("update/weight ratio per unit of learning rate", "单位学习率的更新/权重比"),
    why=Text(
        "an update many times the usual size destroys what was learned, whatever the gradient looks like",
        "远超平常的一次更新会破坏已学到的内容，无论梯度看起来如何",
    ),
    remedy=Text(
        "check the learning rate, the optimizer state and gradient clipping",
        "检查学习率、优化器状态和梯度裁剪",
    ),
    high=10.0,  # one such step undoes what ten before it did
    limits=Limits(
        spike=(4.0, NEVER),
        shift=(1.8, 5.0),
        ramp=(8.0, NEVER),
        shift_sigmas=10.0,
        fall_sigmas=8.0,
        floor=1e-12,
    ),
)


@SIGNAL.measure
def sizes(updates: Updates) -> NDArray[np.float64]:
    # per unit of learning rate: a schedule is no surprise
    return np.array([_size(update) for update in updates.each]) / updates.rates


def _size(update: Update) -> float:
    if update.drive is not None:  # SGD is asked for the proportion of its steps to what pushes them
        push = float(update.drive @ update.drive)
        return math.sqrt(float(update.moved[0].sum()) / push) if push > 0 else math.nan
    assert update.steps is not None
    share = (
        update.watched.weight if update.sparse is None else update.watched.weight * ~update.sparse
    )
    weights = float(update.steps["weight_squares"] @ share)
    moved = float(update.steps["update_squares"] @ share)
    return math.sqrt(moved / weights) if weights > 0 else math.nan


def fault(toy: Any) -> None:
    """The second moments of Adam are lost, and every step is far too long."""
    for state in toy.optimizer.state.values():
        state["exp_avg_sq"].mul_(1e-4)
