"""What is evaluated is not what is trained on."""

from __future__ import annotations

from torchstone.conductor.experiments.recording.run import Batch
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.text import Text

SHARED = ProbeRule(
    "EX109",
    "evaluated-on-training-samples",
    Severity.MEDIUM,
    "wrong result",
    Text("samples of the training data are evaluated", "训练样本出现在评估数据中"),
    Text(
        "the figure of the evaluation is too good: the model has seen its answers",
        "评估结果偏好：模型见过这些答案",
    ),
    Text(
        "split the indices once, before anything else, and keep the parts apart",
        "请先对索引做一次划分，并使各部分互不重叠",
    ),
)
RULES = (SHARED,)
_SHARE = 0.02
"""Of the evaluated samples; a few equal rows are chance in small integer data."""
_DUPLICATES = 0.05
"""Where so many training samples are equal to each other, equal rows mean nothing."""


def examine(subject: Subject) -> Examined:
    batches = subject.run.batches
    training = [item for item in batches if item.training and item.turn == 0]
    loaders = {item.loader for item in batches if item.training}
    others = [item for item in batches if item.loader not in loaders and item.turn == 0]
    if not training or not others:
        return NOTHING_TO_LOOK_AT
    seen = [sample for item in training for sample in item.samples]
    if len(set(seen)) < (1 - _DUPLICATES) * len(seen):
        return NOTHING_TO_LOOK_AT
    shown = []
    apart = False
    for loader in dict.fromkeys(item.loader for item in others):
        own = [item for item in others if item.loader == loader]
        samples = [sample for item in own for sample in item.samples]
        both = sum(sample in set(seen) for sample in samples)
        if both > _SHARE * len(samples) and both > 1:
            shown.append(_shown(own[0], both, len(samples)))
        else:
            apart = True
    # a program that also evaluates on its training data on purpose has another loader that is apart
    return Examined(() if apart else tuple(shown), decided=True)


def _shown(batch: Batch, both: int, total: int) -> Shown:
    return Shown(
        SHARED,
        batch.place,
        Text(
            "{both} of {total} evaluated samples were trained on",
            "{total} 个评估样本中有 {both} 个用于训练",
        ),
        {"both": str(both), "total": str(total)},
        (
            number(
                "evaluated samples that were trained on", "用于训练的评估样本", both, "", IN_THE_RUN
            ),
        ),
    )
