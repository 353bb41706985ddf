"""The size of the weights of a layer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.learn.channels import Limits
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.updates import Updates

SIGNAL = Signal(
    "weight_size",
    phase="update",
    of="layer",
    title=Text("RMS of the weights", "权重的均方根"),
    why=Text(
        "weights that keep shrinking or growing mean too much weight decay, an unstable layer, or weights that other code overwrites",
        "权重持续缩小或增大，说明权重衰减过强、某层不稳定，或权重被其他代码改写",
    ),
    remedy=Text(
        "check weight decay, and other code that writes to the weights",
        "检查权重衰减，以及其他写入权重的代码",
    ),
    high=10.0,  # no optimizer moves weights so far in one window
    limits=Limits(spike=(2.0, 2.0), shift=(2.2, 1.6), ramp=(6.0, 4.0), sigmas=12.0, floor=1e-3),
)


_FEWEST = 8


@SIGNAL.measure
def sizes(updates: Updates) -> NDArray[np.float64]:
    sampled = updates.watched.layer_sampled
    # a few values may pass through zero
    return np.sqrt(updates.moved[:, 1] / np.where(sampled >= _FEWEST, sampled, np.nan))


def fault(toy: Any) -> None:
    """Weight decay is a thousand times too strong."""
    for group in toy.optimizer.param_groups:
        group["weight_decay"] = 20.0
