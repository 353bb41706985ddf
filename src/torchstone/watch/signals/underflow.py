"""The share of gradient values that the cast to the narrow format would flush to zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.updates import Updates

SIGNAL = Signal(
    "underflow_ratio",
    phase="gradient",
    of="layer",
    title=Text("share flushed to zero by the cast", "类型转换时被刷零的占比"),
    why=Text(
        "values at or below half the smallest subnormal become zero in the cast: these gradients are lost",
        "不超过最小次正规数一半的数值在转换时变为零：这些梯度就此丢失",
    ),
    remedy=Text(
        "raise the loss scale, or keep this layer in bf16 or fp32",
        "提高 loss scale，或让该层使用 bf16 或 fp32",
    ),
    limits=Limits(
        spike=(8.0, NEVER), shift=(5.0, NEVER), ramp=(8.0, NEVER), sigmas=12.0, floor=2e-3
    ),
)


@SIGNAL.measure
def flushed(updates: Updates) -> NDArray[np.float64]:
    return np.asarray((updates.below(1) - updates.zeros) * updates.share_of_nonzero)


def fault(toy: Any) -> None:
    """Gradients shrink until fp16 cannot hold them, while everything is still fp32."""
    toy.narrow = "fp16"
    toy.loss_factor = 1e-5
