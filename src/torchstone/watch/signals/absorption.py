"""The share of nonzero gradients whose update leaves the weight as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.beat import Beat
from torchstone.watch.channels import NEVER, Limits
from torchstone.watch.signal import Signal

SIGNAL = Signal(
    "absorption",
    phase="update",
    of="layer",
    title=Text("updates absorbed by rounding", "被舍入吞掉的更新"),
    why=Text(
        "an update below half a unit in the last place of the weight is rounded away: bf16 weights stop learning while the loss still looks fine",
        "小于权重末位一半的更新会被舍入掉：bf16 权重停止学习，而 loss 看似正常",
    ),
    remedy=Text(
        "keep fp32 master weights, use stochastic rounding, or raise the learning rate",
        "保留 fp32 主权重、使用随机舍入，或提高学习率",
    ),
    limits=Limits(
        spike=(NEVER, NEVER), shift=(2.5, NEVER), ramp=(2.5, NEVER), sigmas=12.0, floor=0.1
    ),
)


@SIGNAL.measure
def share(beat: Beat) -> NDArray[np.float64]:
    if beat.steps is None or beat.rate <= 0 or torch.float64 in beat.actor.dtypes:
        return beat.nothing()
    pushed = beat.moved[2]
    if beat.moved[4].any():
        return beat.nothing()
    absorbed = beat.moved[3]
    if absorbed.any():
        matters = beat.matters
        pushed = beat.actor.by_layer(np.where(matters, beat.steps["pushed"], 0).astype(float))
        absorbed = beat.actor.by_layer(np.where(matters, beat.steps["absorbed"], 0).astype(float))
    return np.asarray(absorbed / np.where(pushed > 0, pushed, np.nan))


def fault(toy: Any) -> None:
    """Weights are rounded to bf16 by every step, and steps are small."""
    for group in toy.optimizer.param_groups:
        group["lr"] *= 0.1
    toy.optimizer.register_step_post_hook(
        lambda *_: [p.data.copy_(p.data.bfloat16()) for p in toy.model.parameters()]
    )
