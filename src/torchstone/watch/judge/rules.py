"""From what was read to alerts: learned signals by their baselines, the others by a check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from torchstone.core.finding import Severity
from torchstone.watch.alerts import Alert, channel_name
from torchstone.watch.learn.baselines import Baselines
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.learner import JudgedOptimizer, Learner
from torchstone.watch.measure.signal import (
    Alarm,
    Phase,
    Relearn,
    Signal,
    all_signals,
    checked,
)
from torchstone.watch.measure.update import Update
from torchstone.watch.measure.updates import Updates

_SMALL = 1.5  # a rise or a fall by less than a half: certain, and no hurry


def measure(updates: Sequence[Update], learner: Learner) -> NDArray[np.float64]:
    """The values of the learned signals, a row for each of these updates of one optimizer."""
    table = np.empty((len(updates), learner.baselines.count))
    stack = Updates(updates)
    with np.errstate(all="ignore"):
        for signal, start, end in learner.spans:
            assert signal.value is not None
            values = np.asarray(signal.value(stack))
            table[:, start:end] = values if signal.of == "layer" else values[:, None]
    return table


def check_update(update: Update, phase: Phase, judged: JudgedOptimizer) -> Iterator[Alert]:
    """Alerts of one phase of an update that need no past, or compare with it by themselves."""
    for signal in checked(phase):
        if signal.compare is not None:
            for alarm in signal.compare(update, judged.together):
                yield of_alarm(alarm, signal, update.step)
            continue
        assert signal.check is not None
        for found in signal.check(update):
            if isinstance(found, Relearn):
                judged.learners[found.phase].baselines.forget()
            else:
                yield of_alarm(found, signal, update.step)


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
            assert isinstance(alarm, Alarm)
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
