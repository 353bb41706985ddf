"""How much the backward pass makes of the gradient of the outputs."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal

SIGNAL = Signal(
    "backward_gain",
    phase="call",
    of="run",
    title=Text(
        "ratio of weight gradient norm to output gradient norm", "权重梯度范数与输出梯度范数之比"
    ),
    why=Text(
        "this ratio depends on the network, not on the loss, and changes slowly; a jump is caused by something between the loss and the weights: a hook, a detached branch, a scale factor, added noise, or overwritten weights",
        "该比值取决于网络而非损失，变化缓慢；突变的原因在损失与权重之间：hook、被 detach 的分支、缩放系数、噪声或被改写的权重",
    ),
    remedy=Text(
        "check the code that changes gradients between backward() and the optimizer, then check whether the weights were overwritten",
        "检查 backward() 与优化器之间修改梯度的代码，再检查权重是否被改写",
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
    return float(call.output.gain)


def fault(toy: Any) -> None:
    """Gradients are divided by the number of ranks a second time."""
    for parameter in toy.model.parameters():
        parameter.register_hook(lambda gradient: gradient / 8)
