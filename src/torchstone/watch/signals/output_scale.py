"""The size of the values that the model gives."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.channels import NEVER, Limits
from torchstone.watch.signal import Signal

SIGNAL = Signal(
    "output_scale",
    phase="call",
    of="run",
    title=Text("size of the outputs", "输出数值的大小"),
    why=Text(
        "outputs that jump in size come from a changed last layer, changed weights or inputs, even where the loss does not care about scale",
        "输出大小突变，说明最后一层、权重或输入已改变，即使损失对尺度不敏感",
    ),
    remedy=Text(
        "look at the last layers, at what was loaded or merged into the weights, and at the inputs",
        "检查最后几层、加载或合并进权重的内容，以及输入",
    ),
    high=30.0,  # beyond what a few steps of learning do
    limits=Limits(
        spike=(NEVER, NEVER),
        shift=(2.5, 3.0),
        ramp=(NEVER, NEVER),
        shift_sigmas=10.0,
        fall_sigmas=10.0,
        change=(2.2, 2.2),
        change_sigmas=(14.0, 14.0),
        floor=1e-6,
    ),
)


@SIGNAL.measure
def scale(call: Any) -> float:
    return float(call.output_scale)


def fault(toy: Any) -> None:
    """An adapter is merged into the last layer a second time."""
    toy.model[7].register_forward_hook(lambda _, __, output: 3 * output)
