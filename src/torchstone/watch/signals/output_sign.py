"""Outputs below zero."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal

SIGNAL = Signal(
    "output_sign",
    phase="call",
    of="run",
    title=Text("share of negative outputs", "负值输出占比"),
    why=Text(
        "outputs that lose one sign pass through a function they did not pass through before",
        "输出失去其中一种符号，说明经过了此前没有的函数",
    ),
    remedy=Text(
        "look for a softmax, sigmoid, exp or abs after the last layer",
        "检查最后一层之后是否有 softmax、sigmoid、exp 或 abs",
    ),
    limits=Limits(
        spike=(NEVER, NEVER),
        shift=(2.5, 2.5),
        ramp=(NEVER, NEVER),
        floor=0.1,
        shift_sigmas=8.0,
        fall_sigmas=8.0,
    ),
)


@SIGNAL.measure
def sign(call: Any) -> float:
    return float(call.output.sign)


def fault(toy: Any) -> None:
    """A softmax before the loss that has one of its own."""
    toy.model[7].register_forward_hook(lambda _, __, output: output.softmax(-1))
