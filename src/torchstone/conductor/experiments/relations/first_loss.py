"""The first loss of a classifier is of the size that guessing gives.

A pointer, never proof: weights that were loaded know more than guessing, and a loss may be weighted. Several networks against
each other are not judged.
"""

from __future__ import annotations

import math

from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.core.finding import Severity
from torchstone.core.text import Text

FAR = ProbeRule(
    "EX125",
    "first-loss-far-from-guessing",
    Severity.LOW,
    "instability",
    Text(
        "the first loss is many times what guessing gives",
        "首个损失是随机猜测的许多倍",
    ),
    Text(
        "the network begins very sure of wrong answers: inputs that are not normalised, or weights that begin too large",
        "网络一开始就对错误答案非常自信：输入没有归一化，或初始权重过大",
    ),
    Text(
        "look at the range of the inputs and at the logits of the first batch",
        "检查输入的取值范围和第一个批次的 logits",
    ),
)
RULES = (FAR,)
_TIMES = 4.0
"""Logits with a standard deviation of 1 give 1.2 times the loss of guessing among ten classes, with 3 about twice."""


def examine(subject: Subject) -> Examined:
    first = subject.run.first_classification
    optimizers = {item.optimizer for item in subject.run.steps}
    if first is None or len(optimizers) != 1 or not math.isfinite(first.value):
        return NOTHING_TO_LOOK_AT
    guessing = math.log(first.classes)
    if first.value <= _TIMES * guessing:
        return Examined(decided=True)
    shown = Shown(
        FAR,
        first.place,
        Text(
            "the first loss is {value}; guessing among {classes} classes gives {guessing}",
            "首个损失为 {value}；在 {classes} 个类别中猜测应为 {guessing}",
        ),
        {
            "value": f"{first.value:.3g}",
            "classes": str(first.classes),
            "guessing": f"{guessing:.3g}",
        },
        (
            number("first loss", "首个损失", first.value, "nat", IN_THE_RUN),
            expected(guessing, "nat", IN_THE_RUN),
        ),
    )
    return Examined((shown,), decided=True)
