"""How large the gradient of the outputs is for the loss that is reported."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.channels import NEVER, Limits
from torchstone.watch.signal import Signal

SIGNAL = Signal(
    "loss_slope",
    phase="call",
    of="run",
    title=Text("gradient of the outputs against the loss", "输出梯度与损失之比"),
    why=Text(
        "a loss and its gradient belong together: when one is scaled and the other is not, a mean was taken twice, a factor was lost, or another loss is trained on than is reported",
        "损失与其梯度相互对应：只有一方被缩放，说明求了两次平均、丢了系数，或训练所用的损失与报告的不同",
    ),
    remedy=Text(
        "look at what is between the reported loss and `backward`: averages, accumulation, loss scale, weights of terms",
        "检查报告的损失与 `backward` 之间的一切：平均、梯度累积、损失缩放、各项权重",
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
    return float(call.loss_slope)


def fault(toy: Any) -> None:
    """What is trained on is multiplied, and what is reported is not."""
    toy.model.register_forward_hook(lambda _, __, output: 4 * output - 3 * output.detach())
