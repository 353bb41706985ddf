"""Each layer's part in the gradient norm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.beats import Beats
from torchstone.watch.channels import Limits
from torchstone.watch.signal import Signal

SIGNAL = Signal(
    "layer_consistency",
    phase="gradient",
    of="layer",
    title=Text("share of the gradient norm", "占梯度范数的比例"),
    why=Text(
        "one layer whose gradient grows or vanishes against the others points at that layer, not at the data",
        "某一层梯度相对其他层暴涨或消失，问题在该层而不在数据",
    ),
    remedy=Text(
        "look at this layer: its input range, its initialisation, what was changed in it",
        "检查该层：输入范围、初始化、以及改动",
    ),
    limits=Limits(spike=(6.0, 12.0), shift=(5.0, 6.0), ramp=(8.0, 16.0), sigmas=12.0, floor=1e-9),
)


@SIGNAL.measure
def shares(beats: Beats) -> NDArray[np.float64]:
    whole = beats.squares.sum(axis=1, keepdims=True)
    known = (beats.sizes > 0) & (whole > 0) & np.isfinite(beats.norms)[:, None]
    return np.where(known, np.sqrt(beats.squares / whole), np.nan)


def fault(toy: Any) -> None:
    """The gradient of one layer is multiplied on its way."""
    toy.model[4].weight.register_hook(lambda gradient: gradient * 100)
