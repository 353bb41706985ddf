"""The size of the values that the model is given."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal

SIGNAL = Signal(
    "input_scale",
    phase="call",
    of="run",
    title=Text("RMS of the inputs", "输入的均方根"),
    why=Text(
        "normalisation layers hide a change of input scale from the loss, but the model will fail on correctly scaled data at inference",
        "归一化层会让 loss 看不出输入尺度的变化，但模型在推理时面对正确尺度的数据会失效",
    ),
    remedy=Text(
        "check that the data are normalised, and exactly once", "检查数据是否做了归一化，且只做一次"
    ),
    high=30.0,  # other units: 0 to 255 in place of 0 to 1, say
    limits=Limits(
        spike=(6.0, 20.0),
        shift=(2.0, 2.0),
        ramp=(NEVER, NEVER),
        sigmas=10.0,
        floor=1e-6,
        trends=False,
    ),
)


@SIGNAL.measure
def scale(call: Any) -> float:
    return float(call.input.scale)


def fault(toy: Any) -> None:
    """Inputs are no longer divided by 255."""
    toy.transform = lambda x, y: (x * 255, y)
