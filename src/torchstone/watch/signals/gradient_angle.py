"""The angle between a gradient and the one before it."""

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
    "gradient_angle",
    phase="update",
    of="run",
    title=Text("angle between two gradients in a row", "相邻两步梯度的夹角"),
    why=Text(
        "gradients of different batches stand almost at right angles; when they begin to agree, all batches complain of the same thing: the weights were disturbed, or the data are no longer varied",
        "不同批次的梯度几乎互相垂直；若开始一致，说明所有批次都在指向同一个问题：权重被扰动，或数据不再多样",
    ),
    remedy=Text(
        "compare the batches, and look for what changes the weights beside the optimizer",
        "比较各批次，并检查除优化器外还有什么在改动权重",
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
def angles(beats: Beats) -> NDArray[np.float64]:
    """The mean over the layers; 90° when two gradients have nothing in common."""
    squares = beats.moved[:, 6]
    before = beats.earlier("gradient_squares", squares)
    return beats.directed * mean_angles(beats.moved[:, 8], squares * before * beats.dense)


def fault(toy: Any) -> None:
    """Every batch is the same one."""
    batch = toy.next_batch()
    toy.next_batch = lambda: batch
