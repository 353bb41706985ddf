"""The share of nonzero gradients whose update leaves the weight as it was."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.updates import Updates

SIGNAL = Signal(
    "absorption",
    phase="update",
    of="layer",
    title=Text("updates lost to rounding", "被舍入掉的更新"),
    why=Text(
        "an update smaller than half a ULP of the weight rounds to zero: bf16 weights stop learning while the loss still looks fine",
        "小于权重半个 ULP 的更新会被舍入为零：bf16 权重停止学习，而 loss 看起来仍然正常",
    ),
    remedy=Text(
        "keep fp32 master weights, use stochastic rounding, or raise the learning rate",
        "保留 fp32 主权重、使用随机舍入，或提高学习率",
    ),
    limits=Limits(
        spike=(NEVER, NEVER), shift=(2.5, NEVER), ramp=(2.5, NEVER), sigmas=12.0, floor=0.1
    ),
)


_MEMORY = 0.05  # of what pushes a layer: single batches say little
_FADED = 0.01
_DECAYED = 0.05


@SIGNAL.measure
def shares(updates: Updates) -> NDArray[np.float64]:
    if torch.float64 in updates.watched.dtypes:
        return updates.nothing()
    pushed, absorbed, bad = (
        updates.moved[:, 2].copy(),
        updates.moved[:, 3].copy(),
        updates.moved[:, 4],
    )
    for row in np.flatnonzero(absorbed.any(axis=1)).tolist():
        update = updates.each[row]
        assert update.steps is not None
        for name, sums in (("pushed", pushed), ("absorbed", absorbed)):
            counts = np.where(update.matters, update.steps[name], 0)
            sums[row] = updates.watched.by_layer(counts.astype(float))
    pushed[bad.any(axis=1) | np.isnan(updates.rates)] = 0
    pushed[_fading(updates)] = 0
    return np.asarray(absorbed / np.where(pushed > 0, pushed, np.nan))


def _fading(updates: Updates) -> NDArray[np.bool_]:
    """Layers whose steps are meant to be next to nothing: the rate is at the end of its decay, or
    the gradient has all but vanished with the loss."""
    found = np.zeros(updates.squares.shape, np.bool_)
    size = np.sqrt(updates.squares / np.maximum(updates.sizes, 1))
    for row, (update, rate) in enumerate(zip(updates.each, updates.rates, strict=True)):
        pushes = np.append(rate * size[row] / update.scale, rate)
        usual, largest = cast(Any, update.memory.get("pushes", (pushes, pushes)))
        usual = np.where(np.isfinite(pushes), usual + _MEMORY * (pushes - usual), usual)
        largest = np.fmax(largest, usual)
        update.memory["pushes"] = (usual, largest)
        found[row] = (usual < _FADED * largest)[:-1] | (rate < _DECAYED * largest[-1])
    return found


def fault(toy: Any) -> None:
    """Weights are rounded to bf16 by every step, and steps are small."""
    for group in toy.optimizer.param_groups:
        group["lr"] *= 0.1
    toy.optimizer.register_step_post_hook(
        lambda *_: [p.data.copy_(p.data.bfloat16()) for p in toy.model.parameters()]
    )
