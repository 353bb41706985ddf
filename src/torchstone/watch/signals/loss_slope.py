"""How large the gradient of the outputs is for the loss that is reported."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal

SIGNAL = Signal(
    "loss_slope",
    phase="call",
    of="run",
    title=Text("ratio of output gradient norm to loss", "输出梯度范数与损失之比"),
    why=Text(
        "loss and gradient scale together: when only one of them changes, a mean was taken twice, a factor was lost, or the loss that is reported is not the one that is trained on",
        "损失与梯度同比变化：若只有一方改变，说明取了两次平均、丢了系数，或报告的损失并非训练所用的损失",
    ),
    remedy=Text(
        "check everything between the reported loss and backward(): averaging, gradient accumulation, loss scale, weights of loss terms",
        "检查报告的损失与 backward() 之间的一切：平均、梯度累积、loss scale、各损失项的权重",
    ),
    limits=Limits(
        spike=(NEVER, NEVER),
        ramp=(NEVER, NEVER),
        mixed=True,
        shift=(3.0, 3.0),
        floor=1e-9,
        shift_sigmas=11.0,
        fall_sigmas=11.0,
    ),
)


@SIGNAL.measure
def slope(call: Any) -> float:
    return float(call.output.slope)


def fault(toy: Any) -> None:
    """What is trained on is multiplied, and what is reported is not."""
    toy.model.register_forward_hook(lambda _, __, output: 4 * output - 3 * output.detach())
