"""How far a step moves all weights, against their size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.beat import Beat
from torchstone.watch.beats import Beats
from torchstone.watch.channels import NEVER, Limits
from torchstone.watch.signal import Signal

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
def sizes(beats: Beats) -> NDArray[np.float64]:
    # per unit of learning rate: a schedule is no surprise
    return np.array([_size(beat) for beat in beats.each]) / beats.rates


def _size(beat: Beat) -> float:
    if beat.drive is not None:  # SGD is asked for the proportion of its steps to what pushes them
        push = float(beat.drive @ beat.drive)
        return math.sqrt(float(beat.moved[0].sum()) / push) if push > 0 else math.nan
    assert beat.steps is not None
    share = beat.actor.weight if beat.sparse is None else beat.actor.weight * ~beat.sparse
    weights = float(beat.steps["weight_squares"] @ share)
    moved = float(beat.steps["update_squares"] @ share)
    return math.sqrt(moved / weights) if weights > 0 else math.nan


def fault(toy: Any) -> None:
    """The second moments of Adam are lost, and every step is far too long."""
    for state in toy.optimizer.state.values():
        state["exp_avg_sq"].mul_(1e-4)
