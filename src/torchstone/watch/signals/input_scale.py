"""The size of the values that the model is given."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.channels import NEVER, Limits
from torchstone.watch.signal import Signal

SIGNAL = Signal(
    "input_scale",
    phase="call",
    of="run",
    title=Text("size of the inputs", "输入数值的大小"),
    why=Text(
        "normalisation layers hide inputs of another scale from the loss, and the model will fail when it serves",
        "归一化层会让 loss 看不出输入尺度的变化，而模型在上线后会失效",
    ),
    remedy=Text(
        "check the normalisation of the data, and that it is applied once",
        "检查数据归一化，确认恰好应用一次",
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
    return float(call.input_scale)


def fault(toy: Any) -> None:
    """Inputs are no longer divided by 255."""
    toy.transform = lambda x, y: (x * 255, y)
