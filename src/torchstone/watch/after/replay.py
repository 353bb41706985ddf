"""The alerts that a recorded run would have raised with other thresholds.

The entries of its journal go through the functions that judged the run when it was live: with the
same thresholds they raise the same alerts at the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from torchstone.core.errors import InputError
from torchstone.core.finding import Severity
from torchstone.core.text import NOTHING, Text
from torchstone.watch.alerts import Alert
from torchstone.watch.judge.episodes import Episodes, is_silent
from torchstone.watch.judge.rules import judge_values, signal_named
from torchstone.watch.learn.journal import Alarmed, Changed, Entry
from torchstone.watch.measure.learner import Learner
from torchstone.watch.record.runfile import Run
from torchstone.watch.settings import Settings

_SEVERITIES = tuple(Severity)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Alerts of a run for one number of acceptable false alarms."""

    false_alarms_per_10k: float
    episodes: int
    alerts: tuple[Alert, ...]


@dataclass(frozen=True, slots=True)
class Replayed:
    """One entry of the journal, with the learner that it is for and the alerts that it raised."""

    entry: Entry
    learner: Learner | None
    alerts: tuple[Alert, ...] = ()


def replay(run: Run, false_alarms_per_10k: float) -> Outcome:
    """Judge a run again; checks that learn nothing found what they found when it was live."""
    settings = Settings(
        warmup_steps=_whole(run.header.get("warmup_steps"), 100),
        alert_window=_whole(run.header.get("alert_window"), 50),
        false_alarms_per_10k=false_alarms_per_10k,
    )
    episodes = Episodes(settings.alert_window)
    told: list[Alert] = []
    for item in judged_again(run, settings):
        for alert in item.alerts:
            if is_silent(alert, settings.warmup_steps):
                continue
            if (episode := episodes.take(alert)) is not None:
                told.append(episode.alerts[-1])
    return Outcome(false_alarms_per_10k, episodes.count, tuple(told))


def judged_again(run: Run, settings: Settings) -> Iterator[Replayed]:
    """Every entry of the journal in its order."""
    learners = {int(item["number"]): _learner(run, item, settings) for item in run.series}
    losses = dict(zip(run.scalars[:, 0].astype(int).tolist(), run.column("loss"), strict=True))
    texts = {(int(item["step"]), item["signal"]): item for item in run.alerts}
    for entry in _entries(run):
        if isinstance(entry, Alarmed):
            yield Replayed(entry, None, (_alarm(entry, texts),))
            continue
        learner = learners.get(entry.series)
        if learner is None:
            raise _other_version(run)
        if isinstance(entry, Changed):
            learner.baselines.apply(entry)
            yield Replayed(entry, learner)
            continue
        if len(entry.values) != learner.baselines.count:
            raise _other_version(run)
        raised = judge_values(
            learner.baselines, learner.spans, entry.values, learner.layers, entry.step, entry.stretch
        )  # fmt: skip
        yield Replayed(entry, learner, tuple(_as_shown(alert, losses) for alert in raised))


def _learner(run: Run, series: dict[str, object], settings: Settings) -> Learner:
    phase, layers = series["phase"], series["layers"]
    if phase not in ("gradient", "sample", "update", "call") or not isinstance(layers, list):
        raise _other_version(run)
    learner = Learner(phase, tuple(map(str, layers)), settings.warmup_steps, settings.tightness)
    if learner.baselines.count != series["columns"]:
        raise _other_version(run)
    return learner


def _entries(run: Run) -> Iterator[Entry]:
    if not run.journal and not run.journal_dropped and len(run.scalars):
        raise _other_version(run)
    yield from run.entries()


def _alarm(entry: Alarmed, told: dict[tuple[int, str], dict[str, object]]) -> Alert:
    """A check that found something; its words are recorded where it was told."""
    words = told.get((entry.step, entry.signal), {})
    severity = _SEVERITIES[min(entry.severity, len(_SEVERITIES) - 1)]
    text = Text(str(words.get("en", entry.signal)), str(words.get("zh", entry.signal)))
    try:
        remedy = signal_named(entry.signal).remedy
    except StopIteration:  # another version has checks of its own
        remedy = NOTHING
    layer = str(words.get("layer", ""))
    return Alert(entry.step, entry.signal, layer, math.nan, severity, text=text, next=remedy)


def _as_shown(alert: Alert, losses: dict[int, np.float64]) -> Alert:
    """Losses of both signs are judged on another value than a person wants to see."""
    loss = float(losses.get(alert.step, math.nan))
    known = alert.signal == "loss" and math.isfinite(loss)
    return replace(alert, value=loss) if known else alert


def _whole(value: object, default: int) -> int:
    return value if isinstance(value, int) and value >= 10 else default


def _other_version(run: Run) -> InputError:
    return InputError(
        str(run.path.parent),
        f"a run of torchstone {run.header.get('torchstone', '?')}, without the values that were judged"
        if not run.series
        else f"signals of torchstone {run.header.get('torchstone', '?')}",
        Text("a run that this version recorded", "由当前版本记录的运行"),
        Text("read it without --replay, or record it again", "请不带 --replay 查看，或重新记录"),
    )
