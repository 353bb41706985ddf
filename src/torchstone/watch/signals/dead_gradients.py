"""The share of gradient values that are exactly zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.updates import Updates

SIGNAL = Signal(
    "dead_gradients",
    phase="gradient",
    of="layer",
    title=Text("share of zero gradients", "零梯度占比"),
    why=Text(
        "a gradient that is exactly zero trains nothing: dead units, a detached branch, masked data, or fp16 underflow",
        "恒为零的梯度不产生训练：神经元死亡、分支被 detach、数据被掩码，或 fp16 下溢",
    ),
    remedy=Text(
        "check for dead activations, a detach, an empty mask, or a loss scale that is too low",
        "检查死亡的激活、detach、空掩码或过低的 loss scale",
    ),
    limits=Limits(
        spike=(12.0, NEVER), shift=(4.0, NEVER), ramp=(6.0, NEVER), sigmas=12.0, floor=0.05
    ),
)


@SIGNAL.measure
def zeros(updates: Updates) -> NDArray[np.float64]:
    return np.asarray(updates.zeros * updates.share_of_all)


def fault(toy: Any) -> None:
    """A bias drives every unit of the first layer below zero, where the ReLU is flat."""
    toy.model[1].bias.data.fill_(-50.0)
