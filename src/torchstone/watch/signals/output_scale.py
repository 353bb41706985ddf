"""The size of the values that the model gives."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal

SIGNAL = Signal(
    "output_scale",
    phase="call",
    of="run",
    title=Text("RMS of the outputs", "输出的均方根"),
    why=Text(
        "a jump in the size of the outputs comes from a changed last layer, changed weights or changed inputs, even where the loss does not depend on scale",
        "输出大小突变来自最后一层、权重或输入的改变，即使损失与尺度无关",
    ),
    remedy=Text(
        "inspect the last layers, anything loaded or merged into the weights, and the inputs",
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
    return float(call.output.scale)


def fault(toy: Any) -> None:
    """An adapter is merged into the last layer a second time."""
    toy.model[7].register_forward_hook(lambda _, __, output: 3 * output)
