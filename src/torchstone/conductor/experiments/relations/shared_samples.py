"""What is evaluated is not what is trained on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torchstone.conductor.experiments.recording.run import Batch
from torchstone.conductor.experiments.recording.sources import sources_of, used_once
from torchstone.conductor.experiments.recording.windows import count_covered, windows_of
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
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
_BY_CHANCE = 0.15
"""Of the evaluated samples: fewer equal ones are seen in small made-up data whose parts were drawn apart (2 % and
10 % in two healthy projects), and are reported as a remark."""
"""Of the evaluated samples; a few equal rows are chance in small integer data."""
_DUPLICATES = 0.05
"""Where so many training samples are equal to each other, equal rows mean nothing."""
_SOURCES = 0.1
"""Of the evaluated samples, where only what they were made from is equal."""


_EQUAL = Text(
    "{both} of {total} evaluated samples were trained on",
    "{total} 个评估样本中有 {both} 个用于训练",
)
_AUGMENTED = Text(
    "{both} of {total} evaluated samples are made from the same data as training samples, before they are augmented",
    "{total} 个评估样本中有 {both} 个在增强之前与训练样本来自相同数据",
)
_WINDOWS = Text(
    "{both} of {total} evaluated samples are windows of stretches that were trained on",
    "{total} 个评估样本中有 {both} 个是训练所用区段中的窗口",
)


def examine(subject: Subject) -> Examined:
    first = [item for item in subject.run.batches if item.turn == 0]
    training = [item for item in first if item.loader in subject.run.trained]
    others = [item for item in first if item.loader not in subject.run.trained]
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
        both, total = sum(sample in set(seen) for sample in samples), len(samples)
        limit, said = _SHARE, _EQUAL
        if not both:
            both, total = _count_sources(subject, training[0].loader, loader)
            limit, said = _SOURCES, _AUGMENTED
        if not both:
            both, total = _count_windows(subject, training[0].loader, loader)
            limit, said = _SOURCES, _WINDOWS
        if both > limit * total and both > 1:
            place = _place(subject, training[0].loader, own[0])
            is_chance = said is not _WINDOWS and both < _BY_CHANCE * total
            made = _describe(place, both, total, said)
            shown.append(replace(made, severity=Severity.LOW) if is_chance else made)
        else:
            apart = True
    # a program that also evaluates on its training data on purpose has another loader that is apart
    return Examined(() if apart else tuple(shown), decided=True)


def _count_sources(subject: Subject, training: int, other: int) -> tuple[int, int]:
    """Evaluated samples that are made from what a training sample is made from, and how many were made."""
    known_loaders = subject.run.loaders
    if training not in known_loaders or other not in known_loaders:
        return 0, 0
    one, two = known_loaders[training].data, known_loaders[other].data
    if one is two:
        return 0, 0
    own, theirs = sources_of(one, subject.run.root), sources_of(two, subject.run.root)
    known = used_once(own) & used_once(theirs)
    return sum(bool(item & known) for item in theirs), len(theirs)


def _count_windows(subject: Subject, training: int, other: int) -> tuple[int, int]:
    """Evaluated samples that lie wholly in stretches of a row that training samples show, and how many there are."""
    loaders = subject.run.loaders
    if training not in loaders or other not in loaders:
        return 0, 0
    theirs = windows_of(loaders[other].data)
    own = windows_of(loaders[training].data) if theirs else []
    return count_covered(theirs, own), len(theirs)


def _place(subject: Subject, training: int, batch: Batch) -> Place:
    """Where samples are chosen: in the class of both data sets where it is the project's own, otherwise where the
    loader was made."""
    run = subject.run
    if batch.loader not in run.loaders or training not in run.loaders:
        return batch.place
    loader = run.loaders[batch.loader]
    kind = type(loader.data)
    code = getattr(getattr(kind, "__getitem__", None), "__code__", None)
    if code and type(run.loaders[training].data) is kind:
        path = Path(code.co_filename)
        if path.is_relative_to(run.root):
            return Place(str(path.relative_to(run.root)), code.co_firstlineno, code.co_qualname)
    return loader.place or batch.place


def _describe(place: Place, both: int, total: int, said: Text) -> Shown:
    return Shown(
        SHARED,
        place,
        said,
        {"both": str(both), "total": str(total)},
        (
            number(
                "evaluated samples that were trained on", "用于训练的评估样本", both, "", IN_THE_RUN
            ),
        ),
    )
