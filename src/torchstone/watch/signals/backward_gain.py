"""How much the backward pass makes of the gradient of the outputs."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.channels import NEVER, Limits
from torchstone.watch.signal import Signal

SIGNAL = Signal(
    "backward_gain",
    phase="call",
    of="run",
    title=Text(
        "gradient of the weights against the gradient of the outputs", "权重梯度与输出梯度之比"
    ),
    why=Text(
        "whatever the loss is, the network turns the gradient of its outputs into that of its weights by a factor that moves slowly; a jump lies between the two: hooks, detached parts, scaling, noise, disturbed weights",
        "无论损失如何，网络把输出梯度变成权重梯度的倍数变化缓慢；突变的原因就在两者之间：钩子、被 detach 的部分、缩放、噪声或被扰动的权重",
    ),
    remedy=Text(
        "look at what touches gradients between the loss and the optimizer, and at the weights",
        "检查损失与优化器之间改动梯度的代码，以及权重",
    ),
    limits=Limits(
        spike=(NEVER, NEVER),
        shift=(4.0, 4.0),
        ramp=(NEVER, NEVER),
        shift_sigmas=10.0,
        fall_sigmas=10.0,
        change=(1.25, 1.25),
        change_sigmas=(13.0, 13.0),
        floor=1e-9,
    ),
)


@SIGNAL.measure
def gain(call: Any) -> float:
    return float(call.backward_gain)


def fault(toy: Any) -> None:
    """Gradients are divided by the number of ranks a second time."""
    for parameter in toy.model.parameters():
        parameter.register_hook(lambda gradient: gradient / 8)
