"""How far a step moves the weights of a layer for its learning rate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.learn.channels import Limits
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.updates import Updates

SIGNAL = Signal(
    "update_ratio",
    phase="update",
    of="layer",
    title=Text("update per unit of learning rate", "单位学习率的更新量"),
    why=Text(
        "for one optimizer this ratio is stable; it changes when optimizer state is lost, reset or mixed up, or when the settings of a parameter group change",
        "对同一优化器该比值是稳定的；当优化器状态丢失、被重置或混淆，或参数组设置改变时才会变化",
    ),
    remedy=Text(
        "compare the optimizer's state and param_groups with those of the last normal step",
        "将优化器状态和 param_groups 与上一个正常步比较",
    ),
    limits=Limits(spike=(6.0, 20.0), shift=(4.0, 10.0), ramp=(8.0, 16.0), sigmas=12.0, floor=1e-9),
)


_FEWEST = 8
_MOST_ABSORBED = 0.5
"""Of the weights that a gradient pushes; `absorption` judges what is lost there."""


@SIGNAL.measure
def ratios(updates: Updates) -> NDArray[np.float64]:
    sampled, squares = updates.watched.layer_sampled, updates.moved[:, 0]
    pushed, absorbed = updates.moved[:, 2], updates.moved[:, 3]
    # a frozen layer has no ratio, and a few values have no steady one
    some = (squares > 0) & (sampled >= _FEWEST) & updates.dense
    # steps that mostly vanish in the last digit have the size of rounding, not of the optimizer
    some &= absorbed <= _MOST_ABSORBED * pushed
    steps = np.sqrt(np.where(some, squares, np.nan) / sampled) / updates.rates[:, None]
    for step, update in zip(steps, updates.each, strict=True):
        if update.drive is not None:
            # SGD goes as far as its gradients push it: what is a habit is the proportion
            push = update.drive / np.sqrt(sampled)
            step /= np.where(push > 0, push, np.nan)
    return np.asarray(steps)


def fault(toy: Any) -> None:
    """The second moments of Adam are lost."""
    for state in toy.optimizer.state.values():
        state["exp_avg_sq"].mul_(1e-4)
