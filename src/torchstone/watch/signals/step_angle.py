"""The angle between an update and the negative gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.angles import mean_angles
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.updates import Updates

SIGNAL = Signal(
    "step_angle",
    phase="update",
    of="run",
    title=Text("angle between the update and the negative gradient", "更新方向与负梯度的夹角"),
    why=Text(
        "for one optimizer this angle is stable; when it changes, updates follow something other than the gradient: other gradients, a different optimizer state, weight decay alone, or gradient ascent",
        "对同一优化器该夹角是稳定的；夹角变化说明更新依据的不再是该梯度：别的梯度、不同的优化器状态、仅剩权重衰减，甚至梯度上升",
    ),
    remedy=Text(
        "check what happens to gradients and optimizer state between backward() and step()",
        "检查 backward() 与 step() 之间对梯度和优化器状态做了什么",
    ),
    limits=Limits(
        spike=(NEVER, NEVER),
        shift=(1.35, 1.5),
        ramp=(NEVER, NEVER),
        shift_sigmas=8.0,
        fall_sigmas=8.0,
        change=(1.13, 1.13),
        change_sigmas=(8.0, 8.0),
        floor=1.0,
    ),
    unit="°",
)


@SIGNAL.measure
def angles(updates: Updates) -> NDArray[np.float64]:
    """0° is along the negative gradient, 90° across it; the mean over the layers."""
    moved, size, along = updates.moved[:, 0], updates.moved[:, 6], updates.moved[:, 7]
    return updates.directed * mean_angles(-along, moved * size * updates.dense)


def fault(toy: Any) -> None:
    """The sign of the step is wrong."""
    toy.optimizer.param_groups[0]["maximize"] = True
