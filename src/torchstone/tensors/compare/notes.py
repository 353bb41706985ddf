"""What a reader must know of how a comparison was run."""

from __future__ import annotations

import torch
from torch import nn

from torchstone.core.text import Text
from torchstone.tensors.compare.settings import Settings
from torchstone.tensors.compare.shadow.ledger import Ledger


def reason_for_no_backward(
    model: nn.Module, settings: Settings, final: torch.Tensor | None
) -> Text | None:
    """Why there is no backward pass to compare; None where there is one."""
    if final is not None and final.requires_grad and settings.backward:
        return None
    reason = Text(
        "the output depends on nothing that requires a gradient", "输出不依赖任何需要梯度的张量"
    )
    if not torch.is_grad_enabled():
        reason = Text("gradients are switched off (torch.no_grad)", "梯度已关闭（torch.no_grad）")
    elif not any(item.requires_grad for item in model.parameters()):
        reason = Text("no parameter requires a gradient", "没有参数需要梯度")
    elif not settings.backward:
        reason = Text("backward=False", "backward=False")
    return Text(f"the backward pass was not compared: {reason.en}", f"未比较反向过程：{reason.zh}")


def notes_on_run(settings: Settings, ledger: Ledger) -> list[Text]:
    """What was rounded, followed or counted as exact."""
    notes = []
    if settings.simulate:
        notes.append(
            Text(
                f"{settings.low} kernels were not used: operators ran in fp32 and their results were rounded",
                f"未使用 {settings.low} 内核：算子以 fp32 运行，结果再舍入",
            )
        )
    if ledger.simulated:
        names = ", ".join(sorted(ledger.simulated))
        notes.append(
            Text(
                f"without a low-precision kernel here, rounded from fp32: {names}",
                f"本机没有低精度内核、由 fp32 舍入的算子：{names}",
            )
        )
    if ledger.unsupported:
        names = ", ".join(f"{name} ({why})" for name, why in sorted(ledger.unsupported.items()))
        notes.append(
            Text(
                f"no high-precision form, counted as exact: {names}",
                f"没有高精度形式、按精确处理的算子：{names}",
            )
        )
    if ledger.followed:
        names = ", ".join(sorted(ledger.followed))
        notes.append(
            Text(
                f"shapes that the data decide followed the low run: {names}",
                f"由数据决定形状、跟随低精度运行的算子：{names}",
            )
        )
    if settings.per_layer:
        notes.append(
            Text(
                "layer by layer: what enters a layer counts as exact",
                "逐层比较：进入每一层的数值按精确处理",
            )
        )
    return notes  # fmt: skip
