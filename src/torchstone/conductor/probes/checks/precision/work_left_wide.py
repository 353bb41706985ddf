"""Most of the arithmetic of a mixed-precision run is in half precision."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.harvest.recording import Recording
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.evidence import Number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text
from torchstone.runtime.devices import device

RULE = ProbeRule(
    "PR120", "most-work-outside-autocast", Severity.MEDIUM, "slow",
    Text("most matrix products of a mixed-precision run are taken out of autocast", "混合精度运行中大部分矩阵乘法被排除在 autocast 之外"),
    Text("they run in float32 at half the speed or less, and their activations take twice the memory",
         "它们以 float32 运行，速度不到一半，激活占用两倍内存"),
    Text("switch autocast off only around what needs float32: sums, norms, routers", "仅在需要 float32 的部分（求和、归一化、路由）关闭 autocast"),
)  # fmt: skip
_MOST_SHARE = 0.4
_DEVICE = "a100-80g"


def check(run: Recording) -> Iterator[Shown]:
    work: dict[bool, float] = {True: 0.0, False: 0.0}
    wide: dict[Place, float] = {}
    for item in run.forward_operators():
        if item.name not in ("mm", "addmm", "bmm", "baddbmm") or not item.training:
            continue
        flops = 2.0 * item.output.numel() * item.inputs[-1].shape[-2]
        work[item.outside] += flops
        if item.outside and item.output.dtype is torch.float32:
            wide[item.place] = wide.get(item.place, 0.0) + flops
    total = sum(work.values())
    if work[False]:
        run.asks(RULE)
    share = sum(wide.values()) / total if total else 0.0
    if share > _MOST_SHARE and work[False]:
        yield Shown(
            RULE, max(wide, key=lambda place: wide[place]),
            Text("{share} of the matrix products run in float32 because autocast is switched off around them",
                 "{share} 的矩阵乘法因 autocast 被关闭而以 float32 运行"),
            {"share": f"{share:.0%}"},
            (number("share of the matrix products", "矩阵乘法占比", 100 * share, "%", IN_THE_RUN),
             number("FLOPs in float32", "float32 的 FLOPs", sum(wide.values()), "FLOP", IN_THE_RUN)),
            gain=_faster(),
        )  # fmt: skip


def _faster() -> Number:
    """How much faster a device that most people can rent does the same products in bf16."""
    card = device(_DEVICE)
    times = card.peak("bfloat16").flops_per_second / card.peak("float32").flops_per_second
    return Number(
        Text("speed of these products in bf16, at most", "这些矩阵乘法改用 bf16 的最高加速比"), times, "x",
        Text(f"peak rates of {card.title}", f"{card.title} 的峰值速率"),
    )  # fmt: skip
