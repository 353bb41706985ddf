"""The angle between a gradient and the one before it."""

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
    "gradient_angle",
    phase="update",
    of="run",
    title=Text("angle between consecutive gradients", "相邻两步梯度的夹角"),
    why=Text(
        "gradients of different batches are nearly orthogonal; when they align, every batch asks for the same correction: the weights were disturbed, or the batches are no longer different",
        "不同批次的梯度近乎正交；当它们趋于一致时，每个批次都要求同样的修正：权重被扰动，或各批次不再不同",
    ),
    remedy=Text(
        "compare the last batches with each other, and look for code that changes the weights outside the optimizer",
        "相互比较最近的批次，并查找在优化器之外修改权重的代码",
    ),
    limits=Limits(
        spike=(NEVER, NEVER),
        shift=(NEVER, 1.6),
        ramp=(NEVER, NEVER),
        fall_sigmas=8.0,
        change=(1.25, 1.12),
        change_sigmas=(8.0, 7.0),
        floor=1.0,
    ),
    unit="°",
)


@SIGNAL.measure
def angles(updates: Updates) -> NDArray[np.float64]:
    """The mean over the layers; 90° when two gradients have nothing in common."""
    squares = updates.moved[:, 6]
    before = updates.earlier("gradient_squares", squares)
    return updates.directed * mean_angles(updates.moved[:, 8], squares * before * updates.dense)


def fault(toy: Any) -> None:
    """Every batch is the same one."""
    batch = toy.next_batch()
    toy.next_batch = lambda: batch
