"""Each layer's part in the gradient norm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.learn.channels import Limits
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.updates import Updates

SIGNAL = Signal(
    "layer_consistency",
    phase="gradient",
    of="layer",
    title=Text("layer's share of the gradient norm", "该层占梯度范数的比例"),
    why=Text(
        "when one layer's gradient grows or vanishes relative to the others, the cause is in that layer rather than in the data",
        "某一层的梯度相对其他层增大或消失时，原因在该层而不在数据",
    ),
    remedy=Text(
        "inspect this layer: the range of its inputs, its initialisation, and recent changes to it",
        "检查该层：输入范围、初始化以及最近的改动",
    ),
    limits=Limits(spike=(6.0, 12.0), shift=(5.0, 6.0), ramp=(8.0, 16.0), sigmas=12.0, floor=1e-9),
)


@SIGNAL.measure
def shares(updates: Updates) -> NDArray[np.float64]:
    whole = updates.squares.sum(axis=1, keepdims=True)
    known = (updates.sizes > 0) & (whole > 0) & np.isfinite(updates.norms)[:, None]
    return np.where(known, np.sqrt(updates.squares / whole), np.nan)


def fault(toy: Any) -> None:
    """The gradient of one layer is multiplied on its way."""
    toy.model[4].weight.register_hook(lambda gradient: gradient * 100)
