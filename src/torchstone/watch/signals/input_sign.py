"""Inputs below zero."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal

SIGNAL = Signal(
    "input_sign",
    phase="call",
    of="run",
    title=Text("share of negative inputs", "负值输入占比"),
    why=Text(
        "a change in the sign of the inputs means that preprocessing changed: normalisation was left out or applied twice",
        "输入的符号发生变化，说明预处理变了：漏做或重复做了归一化",
    ),
    remedy=Text(
        "compare mean, minimum and maximum of this batch with those of earlier batches",
        "与之前的批次比较该批次的均值、最小值和最大值",
    ),
    limits=Limits(
        spike=(NEVER, NEVER),
        ramp=(NEVER, NEVER),
        shift=(2.5, 2.5),
        floor=0.1,
        shift_sigmas=8.0,
        fall_sigmas=8.0,
    ),
)


@SIGNAL.measure
def sign(call: Any) -> float:
    return float(call.input.sign)


def fault(toy: Any) -> None:
    """Inputs are no longer centred, though they are as large as before."""
    toy.transform = lambda x, y: (x.abs(), y)
