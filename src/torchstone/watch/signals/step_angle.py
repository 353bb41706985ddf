"""The angle between a step and the way downhill."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.angles import mean_angles
from torchstone.watch.beats import Beats
from torchstone.watch.channels import NEVER, Limits
from torchstone.watch.signal import Signal

SIGNAL = Signal(
    "step_angle",
    phase="update",
    of="run",
    title=Text("angle between the step and the way downhill", "更新方向与下坡方向的夹角"),
    why=Text(
        "an optimizer keeps its distance from the newest gradient; when the angle changes, the steps follow something else: other gradients, another state, weight decay alone, or uphill",
        "优化器与最新梯度保持稳定的夹角；夹角变化说明更新在跟随别的东西：别的梯度、别的状态、仅剩权重衰减，甚至上坡",
    ),
    remedy=Text(
        "look at what happens to gradients and optimizer state between backward and step",
        "检查反向传播与 step 之间梯度和优化器状态发生了什么",
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
def angles(beats: Beats) -> NDArray[np.float64]:
    """0° is straight downhill, 90° neither up nor down; the mean over the layers."""
    moved, size, along = beats.moved[:, 0], beats.moved[:, 6], beats.moved[:, 7]
    return beats.directed * mean_angles(-along, moved * size * beats.dense)


def fault(toy: Any) -> None:
    """The sign of the step is wrong."""
    toy.optimizer.param_groups[0]["maximize"] = True
