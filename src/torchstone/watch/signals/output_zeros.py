"""Outputs that are exactly zero."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal

SIGNAL = Signal(
    "output_zeros",
    phase="call",
    of="run",
    title=Text("share of outputs that are exactly zero", "恰为零的输出占比"),
    why=Text(
        "an output of exactly zero was clipped or masked: it carries no information, and may carry no gradient",
        "恰为零的输出被截断或掩码：不含信息，也可能没有梯度",
    ),
    remedy=Text(
        "look for an activation or a mask after the last layer",
        "检查最后一层之后是否有激活函数或掩码",
    ),
    limits=Limits(
        spike=(NEVER, NEVER),
        shift=(3.0, NEVER),
        ramp=(NEVER, NEVER),
        floor=0.05,
        shift_sigmas=8.0,
    ),
)


@SIGNAL.measure
def zeros(call: Any) -> float:
    return float(call.output.zeros)


def fault(toy: Any) -> None:
    """A ReLU after the last layer."""
    toy.model[7].register_forward_hook(lambda _, __, output: output.relu())
