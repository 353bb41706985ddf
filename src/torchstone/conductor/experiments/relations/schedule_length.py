"""A schedule counts the steps that it is called in, and has reached its end when the training does."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchstone.conductor.experiments.recording.run import Run, Schedule
from torchstone.conductor.experiments.subject import NOTHING_TO_LOOK_AT, Examined, Subject
from torchstone.conductor.probes.checks._text import IN_THE_RUN
from torchstone.conductor.probes.processes import answers_of
from torchstone.conductor.probes.rules import ProbeRule, Shown, number
from torchstone.core.codec import from_data, to_data
from torchstone.core.finding import Severity
from torchstone.core.text import Text

UNFINISHED = ProbeRule(
    "EX120",
    "schedule-counts-other-steps",
    Severity.MEDIUM,
    "wrong result",
    Text(
        "the schedule is longer or shorter than the training, by just the factor between two ways of counting steps",
        "学习率调度比训练长或短，且倍数正好等于两种计步方式之比",
    ),
    Text(
        "the training ends while the learning rate is still high, or goes on while it rises again: the schedule was made "
        "for another count of steps than it is called in",
        "训练结束时学习率仍然很高，或在其重新上升时继续训练：调度按另一种步数设定，与其实际被调用的次数不符",
    ),
    Text(
        "give the scheduler the number of times that its step() is called",
        "请将 step() 的实际调用次数传给调度器",
    ),
)
RULES = (UNFINISHED,)
_FEWEST = 4
"""Calls of a scheduler below which a ratio says nothing."""
_HIGH = 0.1
"""Of the peak: a training that ends lower has come to the end of its schedule."""
_LOWEST = 0.01
"""Of the range above the minimum: where the schedule has arrived."""
_CLOSE = 0.1
"""Relative: the last batch of an epoch and a last short group change the counts a little."""
_RISES = 0.5
"""Of the peak: a schedule that comes back to this after its end was not meant to be called there."""
_REPEATING = ("Cycl", "Restart")
"""In the names of schedulers that rise again on purpose."""
_LEAST = 1.5
_MOST_TIMES = 64
_MOST_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class Factor:
    """How many of one kind of step there are in one of another."""

    value: float
    says: Text


@dataclass(frozen=True, slots=True)
class Ahead:
    """The rates that the schedule would give if the training went on."""

    rates: tuple[float, ...] = ()
    ends: bool = False
    """It refuses to go on after the last of them."""


def examine(subject: Subject) -> Examined:
    run = subject.run
    if run.ended or not run.steps:
        return NOTHING_TO_LOOK_AT  # a run that was cut short says nothing about its end
    parts = {id(part) for item in run.schedules for part in _parts(item.scheduler)}
    shown: list[Shown] = []
    decided = False
    for schedule in run.schedules:
        made = _calls(schedule.scheduler)
        used = [max(item.rates) for item in run.steps if item.optimizer == schedule.optimizer]
        if id(schedule.scheduler) in parts or made < _FEWEST or not used:
            continue
        if early := tuple(_compare_end(run, schedule, made, used)):
            shown += early
            decided = True
            continue
        ahead = _look_ahead(schedule, made)
        peak = max(used + list(ahead.rates))
        if not ahead.rates or peak <= 0:
            continue
        decided = True
        if ahead.rates[0] > _HIGH * peak:
            shown += _compare(run, schedule, made, ahead, peak)
    return Examined(tuple(shown), decided)


def _compare(run: Run, schedule: Schedule, made: int, ahead: Ahead, peak: float) -> Iterator[Shown]:
    lowest, top = min(ahead.rates), 0
    while top + 1 < len(ahead.rates) and ahead.rates[top + 1] > ahead.rates[top]:
        top += 1  # it is still warming up
    left = next(
        place
        for place, rate in enumerate(ahead.rates)
        if place >= top and rate <= lowest + _LOWEST * (peak - lowest)
    )
    end = made + left
    ratio = end / made
    if ratio < _LEAST or (left == len(ahead.rates) - 1 and not ahead.ends):
        return  # it goes down for ever: it has no length
    for factor in _factors(run, schedule.optimizer):
        if factor.value >= _LEAST and abs(ratio / factor.value - 1) <= _CLOSE:
            yield Shown(
                UNFINISHED,
                schedule.place,
                Text(
                    "step() is called {made} times and the schedule lasts {end}: {ratio} times as long, which is {factor}; "
                    "the rate ends at {rate} of its peak",
                    "step() 被调用 {made} 次，而调度长度为 {end}：为前者的 {ratio} 倍，正是{factor_zh}；"
                    "结束时学习率为峰值的 {rate}",
                ),
                {
                    "made": str(made),
                    "end": str(end),
                    "ratio": f"{ratio:.3g}",
                    "factor": factor.says.en,
                    "factor_zh": factor.says.zh,
                    "rate": f"{ahead.rates[0] / peak:.0%}",
                },
                (
                    number("calls of step()", "step() 调用次数", made, "", IN_THE_RUN),
                    number("length of the schedule", "调度长度", end, "", IN_THE_RUN),
                ),
            )
            return


def _compare_end(run: Run, schedule: Schedule, made: int, used: list[float]) -> Iterator[Shown]:
    """A schedule that came to its end long before the training did, and rose again."""
    peak, lowest = max(used), min(used)
    top = next(place for place, rate in enumerate(used) if rate > (1 - _LOWEST) * peak)
    arrived = lowest + _LOWEST * (peak - lowest)
    low = next((place for place in range(top, len(used)) if used[place] <= arrived), 0)
    kind = type(schedule.scheduler).__name__
    if not low or max(used[low:]) < _RISES * peak or any(word in kind for word in _REPEATING):
        return
    end = max(round((low - top) * made / len(used)), 1)
    ratio = made / end
    for factor in (*_factors(run, schedule.optimizer), _epochs(run)):
        if factor.value >= _LEAST and abs(ratio / factor.value - 1) <= _CLOSE:
            yield Shown(
                UNFINISHED,
                schedule.place,
                Text(
                    "the schedule ends after {end} calls of step() and then rises again; it is called {made} times: {ratio} "
                    "times as often, which is {factor}",
                    "调度在 step() 调用 {end} 次后结束，随后重新上升；实际调用 {made} 次：为前者的 {ratio} 倍，正是{factor_zh}",
                ),
                {
                    "made": str(made),
                    "end": str(end),
                    "ratio": f"{ratio:.3g}",
                    "factor": factor.says.en,
                    "factor_zh": factor.says.zh,
                },
                (
                    number("calls of step()", "step() 调用次数", made, "", IN_THE_RUN),
                    number("length of the schedule", "调度长度", end, "", IN_THE_RUN),
                ),
            )
            return


def _factors(run: Run, optimizer: int) -> Iterator[Factor]:
    steps = sum(item.optimizer == optimizer for item in run.steps)
    if steps and len({item.optimizer for item in run.steps}) == 1:
        yield Factor(
            len(run.losses) / steps,
            Text("the number of backward passes in one update", "每次更新的反向传播次数"),
        )
    training = [item for item in run.batches if item.loader in run.trained]
    for loader in dict.fromkeys(item.loader for item in training):
        first = sum(item.loader == loader and item.turn == 0 for item in training)
        yield Factor(first, Text("the number of batches in an epoch", "每个 epoch 的批数"))
        size = max(len(item.samples) for item in training if item.loader == loader)
        yield Factor(size, Text("the number of samples in a batch", "每批的样本数"))
        turns = len({item.turn for item in training if item.loader == loader})
        yield Factor(
            steps / max(turns, 1),
            Text("the number of updates in an epoch", "每个 epoch 的更新次数"),
        )


def _epochs(run: Run) -> Factor:
    turns = {item.turn for item in run.batches if item.loader in run.trained}
    return Factor(len(turns), Text("the number of epochs", "epoch 的个数"))


def _calls(scheduler: Any) -> int:
    """How often its step() was called."""
    return int(getattr(scheduler, "last_epoch", 0))


def _parts(scheduler: Any) -> tuple[Any, ...]:
    """The schedulers that one is put together from."""
    return tuple(getattr(scheduler, "_schedulers", ()))


def _look_ahead(schedule: Schedule, made: int) -> Ahead:
    """It is tried in a process of its own, so that the schedule stays as it is."""
    count = min(made * _MOST_TIMES, _MOST_STEPS)
    ((text, _),) = answers_of([functools.partial(_play, schedule.scheduler, count)])
    return from_data(Ahead, json.loads(text), "ahead") if text else Ahead()


def _play(scheduler: Any, count: int) -> str:
    rates: list[float] = []
    ends = False
    for _ in range(count):
        rates.append(max(float(group["lr"]) for group in scheduler.optimizer.param_groups))
        try:
            scheduler.step()
        except Exception:  # a schedule that refuses to go on has reached its length
            ends = True
            break
    return json.dumps(to_data(Ahead(tuple(rates), ends)))
