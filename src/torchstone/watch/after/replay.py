"""The alerts that a recorded run would have raised with other thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from torchstone.watch.judge.alerts import Alert
from torchstone.watch.judge.episodes import Episodes
from torchstone.watch.judge.rules import judge_values
from torchstone.watch.learn.baselines import SETTLED_AFTER, Baselines
from torchstone.watch.measure.signal import Signal, all_signals
from torchstone.watch.record.runfile import Run
from torchstone.watch.settings import Settings

_RATE_MEMORY = 0.01


@dataclass(frozen=True, slots=True)
class Outcome:
    """Alerts of the learned signals for one number of acceptable false alarms."""

    false_alarms_per_10k: float
    episodes: int
    alerts: tuple[Alert, ...]


def replay(run: Run, false_alarms_per_10k: float) -> Outcome:
    """The recorded values against fresh baselines: steps one by one, layers as often as recorded."""
    settings = Settings(
        warmup_steps=_whole(run.header.get("warmup_steps"), 100),
        alert_window=_whole(run.header.get("alert_window"), 50),
        false_alarms_per_10k=false_alarms_per_10k,
    )
    alerts = [*_of_scalars(run, settings), *_of_layers(run, settings)]
    alerts.sort(key=lambda alert: alert.step)
    episodes = Episodes(settings.alert_window)
    told = tuple(e.alerts[-1] for alert in alerts if (e := episodes.take(alert)) is not None)
    return Outcome(false_alarms_per_10k, episodes.count, told)


def _whole(value: object, default: int) -> int:
    return value if isinstance(value, int) and value >= 10 else default


def _of_scalars(run: Run, settings: Settings) -> list[Alert]:
    found: list[Alert] = []
    stretches = stretches_of(run)
    for column in run.columns[1:]:
        name = column.partition("[")[0]
        signal = next((s for s in all_signals() if s.name == name and s.limits), None)
        if signal is None or signal.limits is None:
            continue
        settled_after = SETTLED_AFTER if signal.phase == "update" else 0
        baselines = Baselines(
            [signal.limits.scaled(settings.tightness)], settings.warmup_steps, settled_after
        )
        for row, value, stretch in zip(run.scalars, run.column(column), stretches, strict=True):
            spans = [(signal, 0, 1)]
            found += judge_values(baselines, spans, np.array([value]), (), int(row[0]), stretch)
    return found


def stretches_of(run: Run) -> list[float]:
    """How much thresholds gave way to the learning rate, as it did when the run was live."""
    slow: float | None = None
    found = []
    for rate in run.column("lr"):
        if not np.isfinite(rate) or rate <= 0:
            found.append(0.0)
            continue
        log = float(np.log(rate))
        slow = log if slow is None else slow
        found.append(0.5 * abs(log - slow))
        slow += _RATE_MEMORY * (log - slow)
    return found


def _of_layers(run: Run, settings: Settings) -> list[Alert]:
    found: list[Alert] = []
    for place, actor in enumerate(run.actors):
        names = tuple(str(name) for name in actor.get("layers", []))
        signals: list[Signal] = _signals(actor)
        limits = [s.limits.scaled(settings.tightness) for s in signals if s.limits for _ in names]
        baselines = Baselines(limits, max(settings.warmup_steps // 10, 8))
        width = len(names)
        spans = [(s, i * width, (i + 1) * width) for i, s in enumerate(signals)]
        for step, number, values in run.layers:
            if number == place and values.shape == (len(signals), width):
                found += judge_values(baselines, spans, values.reshape(-1), names, step, 0.0)
    return found


def _signals(actor: dict[str, Any]) -> list[Signal]:
    known = {signal.name: signal for signal in all_signals() if signal.limits}
    names = [str(name) for name in actor.get("signals", [])]
    return [known[name] for name in names] if all(name in known for name in names) else []
