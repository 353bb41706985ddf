"""Tensors with a history do not pile up from step to step."""

from __future__ import annotations

import itertools

from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.text import Text

KEPT = ProbeRule(
    "EX104",
    "history-kept-alive",
    Severity.MEDIUM,
    "slow",
    Text("the graphs of earlier steps stay in memory", "此前各步的计算图一直留在内存中"),
    Text("memory grows with every step until the program ends", "内存随每一步增长，直至程序结束"),
    Text(
        "keep `loss.detach()` or `loss.item()`, not the loss itself",
        "请保存 `loss.detach()` 或 `loss.item()`，而不是损失本身",
    ),
)
RULES = (KEPT,)
_LOOKS = 3
"""Counts that must rise in a row, each after twice as many steps: buffers that fill up stop rising."""


def examine(subject: Subject) -> Examined:
    live = subject.run.live
    if len(live) < _LOOKS:
        return NOTHING_TO_LOOK_AT
    rates = [(b - a) / (m - n) for (n, a), (m, b) in itertools.pairwise(live)]
    if min(rates) < 1:  # at least one more tensor in every step
        return Examined(decided=True)
    place = subject.run.steps[0].place
    shown = Shown(
        KEPT,
        place,
        Text(
            "{rate} more tensors with a history are alive after every step ({first} after {one} steps, {last} after {two})",
            "每一步之后多出 {rate} 个带计算图的张量（{one} 步后 {first} 个，{two} 步后 {last} 个）",
        ),
        {
            "rate": f"{min(rates):.0f}",
            "first": str(live[0][1]),
            "one": str(live[0][0]),
            "last": str(live[-1][1]),
            "two": str(live[-1][0]),
        },
        (number("tensors kept for every step", "每一步保留的张量", min(rates), "", IN_THE_RUN),),
    )
    return Examined((shown,), decided=True)
