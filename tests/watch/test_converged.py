"""What a converged model does among its last digits is noise."""

from __future__ import annotations

import math

import numpy as np

from torchstone.watch.judge.rules import judge_values, signal_named
from torchstone.watch.learn.baselines import Baselines


def _told(values: list[float]) -> int:
    signal = signal_named("grad_norm")
    assert signal.limits is not None
    baselines = Baselines([signal.limits], 100)
    found = 0
    for step, value in enumerate(values):
        alerts = judge_values(baselines, [(signal, 0, 1)], np.array([value]), (), step, 0.0)
        found += len(list(alerts))
    return found


def _noise(level: float, count: int, seed: int) -> list[float]:
    draw = np.random.default_rng(seed)
    return (level * np.exp(0.1 * draw.standard_normal(count))).tolist()


def test_a_rise_far_below_what_was_usual_is_no_alert() -> None:
    early, late = _noise(1.0, 300, 0), _noise(1e-6, 300, 1)
    slow = [math.exp(-step * 0.03) for step in range(460)]
    rise = _noise(1e-5, 40, 2)
    assert _told([*early, *slow, *late, *rise]) == 0
    assert _told([*late, *rise]) > 0, "where it has always been so small it is one"
    assert _told([*early, *slow, *late, *_noise(0.5, 40, 3)]) > 0, "back to what it was"


def test_updates_may_be_as_large_as_their_gradients_are() -> None:
    limits = [signal_named("grad_norm").limits]
    assert limits[0] is not None
    steady, scattered = Baselines([limits[0]], 100), Baselines([limits[0]], 100)
    draw = np.random.default_rng(0)
    for _ in range(200):
        steady.push(np.exp(0.1 * draw.standard_normal(1)))
        scattered.push(np.exp(1.0 * draw.standard_normal(1)))
    for baselines in (steady, scattered):
        baselines.push(np.array([20.0]))
    assert steady.burst(0) == 0.0
    assert scattered.burst(0) > 2.0
