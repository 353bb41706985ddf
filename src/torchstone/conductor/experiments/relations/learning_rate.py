"""The learning rate lasts as long as the training does."""

from __future__ import annotations

from torchstone.conductor.experiments.recording.run import Step
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.finding import Severity
from torchstone.core.place import Place
from torchstone.core.text import Text

USED_UP = ProbeRule(
    "EX110",
    "learning-rate-used-up-early",
    Severity.MEDIUM,
    "wrong result",
    Text(
        "the learning rate reaches its end long before the training does",
        "学习率远在训练结束之前就已降到最低",
    ),
    Text(
        "the remaining steps change next to nothing: the scheduler counts other steps than it is called in "
        "(epochs instead of batches, or micro-batches)",
        "其余各步几乎不再改变模型：调度器计数的步与其被调用的步不同（例如以 epoch 计而按 batch 调用）",
    ),
    Text(
        "give the scheduler the number of calls that are really made",
        "请将实际调用的次数传给调度器",
    ),
)
ZERO = ProbeRule(
    "EX111",
    "learning-rate-zero",
    Severity.HIGH,
    "wrong result",
    Text("the learning rate is 0 in every step", "每一步的学习率都是 0"),
    Text("nothing is learned", "模型学不到任何东西"),
    Text("look at how the scheduler computes its first value", "检查调度器如何计算其初始值"),
)
NEVER_CHANGES = ProbeRule(
    "EX115",
    "schedule-without-effect",
    Severity.MEDIUM,
    "wrong result",
    Text(
        "a scheduler was made, and the learning rate never changes",
        "创建了学习率调度器，但学习率从未改变",
    ),
    Text(
        "the schedule is not in force: its step is never called, or it belongs to another optimizer",
        "调度未生效：从未调用其 step，或它属于另一个优化器",
    ),
    Text(
        "call scheduler.step() after every optimizer step or epoch, as the schedule counts",
        "请按调度的计数方式，在每次更新或每个 epoch 之后调用 scheduler.step()",
    ),
)
RULES = (USED_UP, ZERO, NEVER_CHANGES)
_FEWEST = 12
_LOW = 0.02
"""Of the peak."""
_EARLY = 0.8
"""Of the steps of the run."""


def examine(subject: Subject) -> Examined:
    run = subject.run
    if run.ended or len(run.steps) < _FEWEST:
        return NOTHING_TO_LOOK_AT  # a run that was cut short says nothing about its end
    shown = []
    for optimizer in dict.fromkeys(item.optimizer for item in run.steps):
        own = [item for item in run.steps if item.optimizer == optimizer and item.rates]
        if len(own) >= _FEWEST:
            shown += _look(own)
            made = [item for item in run.schedules if item.optimizer == optimizer]
            if made and len({item.rates for item in own}) == 1 and max(own[0].rates) > 0:
                shown.append(_never_changes(own, made[0].place))
    return Examined(tuple(shown), decided=True)


def _never_changes(steps: list[Step], made_at: Place) -> Shown:
    rate = max(steps[0].rates)
    return Shown(
        NEVER_CHANGES,
        made_at,
        Text("all {count} steps have a rate of {rate}", "全部 {count} 步的学习率均为 {rate}"),
        {"count": str(len(steps)), "rate": f"{rate:.3g}"},
        (number("rate", "学习率", rate, "", IN_THE_RUN),),
    )


def _look(steps: list[Step]) -> list[Shown]:
    rates = [max(item.rates) for item in steps]
    peak = max(rates)
    how = (number("largest rate", "最大学习率", peak, "", IN_THE_RUN),)
    if peak == 0:
        return [
            Shown(
                ZERO,
                steps[0].place,
                Text("all {count} steps have a rate of 0", "全部 {count} 步的学习率为 0"),
                {"count": str(len(steps))},
                how,
            )
        ]
    last = next((n for n in range(len(rates) - 1, -1, -1) if rates[n] > _LOW * peak), 0)
    if last + 1 >= _EARLY * len(rates):
        return []
    return [
        Shown(
            USED_UP,
            steps[0].place,
            Text(
                "after {last} of {count} steps the rate stays below 2 % of its peak",
                "{count} 步中的第 {last} 步之后，学习率一直低于峰值的 2 %",
            ),
            {"last": str(last + 1), "count": str(len(rates))},
            (
                *how,
                number(
                    "last step with a rate above 2 % of it",
                    "最后一个高于其 2 % 的步",
                    last + 1,
                    "",
                    IN_THE_RUN,
                ),
            ),
        )
    ]
