"""A loss is given the kind of numbers that it takes."""

from __future__ import annotations

from collections.abc import Sequence

from torchstone.conductor.experiments.recording.run import LossInput
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.text import Text

OTHER = ProbeRule(
    "EX128",
    "loss-of-other-values",
    Severity.HIGH,
    "wrong result",
    Text(
        "a loss is given probabilities, or values that are not log-probabilities",
        "损失函数得到的是概率，或不是对数概率的值",
    ),
    Text(
        "the loss is a number and may go down, but it is not the loss that was meant: gradients are small or wrong",
        "损失仍是一个会下降的数，但并非所要的损失：梯度偏小或有误",
    ),
    Text(
        "give cross_entropy and the losses with logits what comes before softmax or sigmoid, nll_loss and kl_div the "
        "result of log_softmax",
        "cross_entropy 与带 logits 的损失应传入 softmax 或 sigmoid 之前的值，nll_loss 与 kl_div 应传入 log_softmax 的结果",
    ),
)
RULES = (OTHER,)
_LOGARITHMS = ("nll_loss", "kl_div")
_FEWEST = 2
"""Calls of one line that agree: a single batch may look so by chance."""


def examine(subject: Subject) -> Examined:
    given = subject.run.loss_inputs
    if not given:
        return NOTHING_TO_LOOK_AT
    shown = []
    for place in dict.fromkeys(item.place for item in given if item.place):
        own = [item for item in given if item.place == place]
        if len(own) >= _FEWEST and (kind := _wrong_kind(own)):
            shown.append(
                Shown(
                    OTHER,
                    place,
                    Text(
                        "`{loss}` takes {wanted} and is given {kind}",
                        "`{loss}` 需要{wanted_zh}，得到的却是{kind_zh}",
                    ),
                    {
                        "loss": own[0].loss,
                        "wanted": "log-probabilities" if own[0].loss in _LOGARITHMS else "logits",
                        "wanted_zh": "对数概率" if own[0].loss in _LOGARITHMS else " logits",
                        "kind": kind,
                        "kind_zh": "概率" if kind == "probabilities" else "其他值",
                    },
                    (
                        number(
                            "calls with such values", "得到此类值的调用", len(own), "", IN_THE_RUN
                        ),
                    ),
                )
            )
    return Examined(tuple(shown), decided=True)


def _wrong_kind(own: Sequence[LossInput]) -> str:
    """What all calls of a line were given, where that is not what the loss takes; empty where it may be."""
    kinds = {item.kind for item in own}
    if kinds == {"probabilities"}:
        return "probabilities"
    # unnormalised values are used with kl_div on purpose
    return "other values" if kinds == {"other"} and own[0].loss == "nll_loss" else ""
