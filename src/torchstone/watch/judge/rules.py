"""From what was read to alerts: learned signals by their baselines, the others by a check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from torchstone.core.finding import Severity
from torchstone.watch.judge.alerts import Alert, channel_name
from torchstone.watch.learn.baselines import Baselines
from torchstone.watch.measure.signal import (
    Alarm,
    Phase,
    Signal,
    Values,
    all_signals,
    checked,
)
from torchstone.watch.measure.update import TrainingCall, Update
from torchstone.watch.measure.updates import Updates

_SMALL = 1.5  # a rise or a fall by less than a half: certain, and no hurry


def measure(updates: Sequence[Update], phase: Phase) -> None:
    """Give each of these updates of one optimizer the values of the learned signals."""
    learner = updates[0].watched.learners.get(phase)
    if learner is None or not learner.signals:
        return
    table = np.empty((len(updates), learner.baselines.count))
    stack = Updates(updates)
    with np.errstate(all="ignore"):
        for signal, start, end in learner.spans:
            assert signal.value is not None
            values = np.asarray(signal.value(stack))
            table[:, start:end] = values if signal.of == "layer" else values[:, None]
    for update, row in zip(updates, table, strict=True):
        update.values[phase] = row


def judge_update(update: Update, phase: Phase, stretch: float) -> Iterator[Alert | Values]:
    """Alerts of one phase of an update, and the values they were judged on."""
    for signal in checked(phase):
        assert signal.check is not None
        for alarm in signal.check(update):
            yield of_alarm(alarm, signal, update.step)
    learner = update.watched.learners.get(phase)
    if learner is None or not learner.signals:
        return
    values = update.values.pop(phase)
    yield Values(learner.spans, values, learner.of_run)
    yield from judge_values(
        learner.baselines, learner.spans, values, update.watched.layers, update.step, stretch
    )


def judge_values(
    baselines: Baselines, spans: list[tuple[Signal, int, int]], values: NDArray[np.float64],
    layers: tuple[str, ...], step: int, stretch: float,
) -> Iterator[Alert]:  # fmt: skip
    """The worst layer of every signal that left its range, with the number of the others."""
    judgement = baselines.judge(values, stretch, step)
    if judgement.quiet:
        return
    for signal, start, end in spans:
        bad = np.flatnonzero(judgement.channel[start:end])
        if not len(bad):
            continue
        place = int(bad[np.abs(judgement.sigmas[start:end][bad]).argmax()])
        worst = start + place
        if judgement.sigmas[worst] < 0 and baselines.seen < signal.falls_from:
            continue
        value = baselines.value_of(judgement, worst, float(values[worst]))
        if signal.fades and baselines.has_faded(worst, value):
            continue
        centre = float(judgement.centre[worst])
        yield Alert(
            step, signal.name, layers[place] if signal.of == "layer" else "", value,
            severity_of(signal, value, centre), centre,
            float(judgement.width[worst]), float(judgement.sigmas[worst]),
            channel_name(judgement.channel[worst]), signal.unit, len(bad) - 1, next=signal.remedy,
        )  # fmt: skip


def severity_of(signal: Signal, value: float, usual: float) -> Severity:
    """Severity follows size: how many times its usual value a learned signal has reached."""
    assert signal.limits is not None
    factor = (value + signal.limits.floor) / (usual + signal.limits.floor)
    if factor >= signal.high:
        return Severity.HIGH
    small = 1 / _SMALL < factor < _SMALL
    return Severity.LOW if small else signal.severity


def judge_call(call: TrainingCall) -> Iterator[Alert]:
    """Alerts of what a call shows beside its updates."""
    for signal in checked("call"):
        assert signal.check is not None
        for alarm in signal.check(call):
            yield of_alarm(alarm, signal, call.step)


def of_alarm(alarm: Alarm, signal: Signal, step: int) -> Alert:
    """An alarm as an alert."""
    return Alert(
        step, alarm.signal, alarm.layer, alarm.value, alarm.severity or signal.severity,
        text=alarm.text, next=signal.remedy,
    )  # fmt: skip


def signal_named(name: str) -> Signal:
    """The signal of this name."""
    return next(signal for signal in all_signals() if signal.name == name)
