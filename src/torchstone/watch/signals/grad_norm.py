"""The norm of all gradients of an optimizer, before clipping."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.updates import Updates

SIGNAL = Signal(
    "grad_norm",
    phase="gradient",
    of="run",
    title=Text("gradient norm", "梯度范数"),
    why=Text(
        "a gradient norm outside its usual range means that the data, the loss or the weights changed",
        "梯度范数超出正常范围，说明数据、损失或权重发生了变化",
    ),
    remedy=Text(
        "inspect the batch of this step and the layers whose gradients grew first; if batches like it are expected, clip gradients or lower the learning rate",
        "检查该步的批次和梯度最先增大的层；如果这类批次是正常的，则裁剪梯度或降低学习率",
    ),
    fades=True,
    high=30.0,  # without clipping one such step undoes hundreds
    # no ramp downwards: gradients that fade as the loss converges are what is hoped for
    limits=Limits(spike=(2.5, NEVER), ramp=(4.0, NEVER), fall_sigmas=11.0),
)


@SIGNAL.measure
def norms(updates: Updates) -> NDArray[np.float64]:
    return updates.norms


def fault(toy: Any) -> None:
    """The loss is a hundred times too large."""
    toy.loss_factor = 100.0
