"""The share of gradient values that lose digits because they are subnormal in the narrow format."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal
from torchstone.watch.measure.updates import Updates

SIGNAL = Signal(
    "subnormal_ratio",
    phase="gradient",
    of="layer",
    title=Text("share of subnormal values", "次正规数占比"),
    why=Text(
        "subnormal values have fewer significant bits the smaller they are, and some hardware flushes them to zero",
        "次正规数越小有效位越少，部分硬件会直接刷零",
    ),
    remedy=Text(
        "raise the loss scale, or keep this layer in bf16 or fp32",
        "提高 loss scale，或让该层使用 bf16 或 fp32",
    ),
    limits=Limits(
        spike=(8.0, NEVER), shift=(4.0, NEVER), ramp=(6.0, NEVER), sigmas=12.0, floor=0.02
    ),
)


@SIGNAL.measure
def subnormal(updates: Updates) -> NDArray[np.float64]:
    return np.asarray((updates.below(2) - updates.below(1)) * updates.share_of_nonzero)


def fault(toy: Any) -> None:
    """The loss is scaled down until most gradients are subnormal in fp16."""
    toy.narrow = "fp16"
    toy.loss_factor = 1e-3
