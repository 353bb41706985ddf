"""A bank is silent on healthy series and finds spikes, shifts and ramps; C and numpy agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from torchstone.watch.learn.baselines import Baselines
from torchstone.watch.learn.channels import Channel, Limits
from torchstone.watch.settings import Settings


def _series(steps: int, seed: int = 0, trend: float = 0.0) -> NDArray[np.float64]:
    """Heavy-tailed noise around a level that rises, as gradient norms do."""
    generator = np.random.default_rng(seed)
    noise = generator.standard_t(8, size=steps) * 0.12
    return np.exp(noise + trend * np.arange(steps) / steps)


def _alarms(values: NDArray[np.float64], limits: Limits | None = None) -> list[tuple[int, Channel]]:
    baselines = Baselines([limits or Limits()], 100)
    found = []
    for step, value in enumerate(values):
        judgement = baselines.push(np.array([value]))
        if judgement.channel[0]:
            found.append((step, Channel(judgement.channel[0])))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_healthy_series_are_silent(seed: int) -> None:
    assert _alarms(_series(3000, seed, trend=math.log(4))) == []


def test_a_spike_is_found_at_its_step() -> None:
    values = _series(600)
    values[400] *= 10
    assert _alarms(values) == [(400, Channel.SPIKE)]


@pytest.mark.parametrize("factor", [4.0, 1 / 8])
def test_a_shift_is_found_within_fifty_steps(factor: float) -> None:
    values = _series(600)
    values[400:] *= factor
    found = _alarms(values)
    assert found
    assert 400 <= found[0][0] <= 450


def test_a_ramp_is_found() -> None:
    values = _series(1200)
    values[600:] *= np.exp(np.minimum(np.linspace(0, 2 * math.log(10), 600), math.log(10)))
    found = _alarms(values)
    assert found
    assert found[0][0] > 600


def test_a_new_level_becomes_normal() -> None:
    values = _series(2000)
    values[500:] *= 10
    late = [step for step, _ in _alarms(values) if step > 1000]
    assert late == []


def test_nothing_is_said_during_warm_up() -> None:
    values = _series(200)
    values[50] *= 1e6
    assert [step for step, _ in _alarms(values[:100])] == []


def test_a_spike_stands_out_from_a_trend() -> None:
    values = np.exp(-np.arange(300) * 0.03 + np.random.default_rng(0).normal(0, 0.05, 300))
    values[250] *= 3000
    assert (250, Channel.SPIKE) in _alarms(values)


def test_missing_values_teach_nothing() -> None:
    values = _series(400)
    values[::3] = np.nan
    assert _alarms(values) == []


@pytest.mark.parametrize("settled_after", [0, 256])
def test_a_fall_among_the_first_values_is_what_is_hoped_for(settled_after: int) -> None:
    values = _series(600)
    values[150:] /= 8
    baselines = Baselines([Limits(spike=(math.inf, math.inf))], 100, settled_after)
    found = [
        step for step, value in enumerate(values) if baselines.push(np.array([value])).channel[0]
    ]
    assert bool(found) == (settled_after == 0)


def test_the_dial_widens_and_tightens() -> None:
    assert Settings(false_alarms_per_10k=2).tightness == 1.0
    assert Settings(false_alarms_per_10k=0.1).tightness > 1.2
    assert Settings(false_alarms_per_10k=50).tightness < 0.8
    wide = Limits().scaled(2.0)
    assert wide.sigmas == 16
    assert wide.spike[0] == pytest.approx(2.5**2)


def test_c_and_numpy_agree() -> None:
    generator = np.random.default_rng(1)
    limits = [
        Limits(), Limits(floor=0.01), Limits(spike=(1.5, 1.5)), Limits(trends=False),
        Limits(change=(1.2, 1.2)), Limits(ramp=(1.5, 1.5)),
    ] * 10  # fmt: skip
    c, python = Baselines(limits, 50), Baselines(limits, 50)
    assert c.past.in_c is not None
    python.past.in_c = python.past.middle_of_raw._function = None
    python.past.middle_of_blocks._function = None
    level, spoke = np.zeros(60), set()
    slope = 0.003 * (generator.random(60) < 0.2)
    for step in range(900):
        level += slope + np.where(generator.random(60) < 0.002, 1.5, 0.0)
        values = np.exp(level + 0.2 * generator.standard_t(3, size=60))
        values[generator.random(60) < 0.05] = np.nan
        values[generator.random(60) < 0.005] = 0.0
        values[generator.random(60) < 0.005] = np.inf
        stretch = 0.3 if step % 7 == 0 else 0.0
        if step == 600:
            c.forget()
            python.forget()
        one, two = c.push(values, stretch), python.push(values, stretch)
        marked = one.channel > 0
        spoke.update(one.channel[marked].tolist())
        assert one.quiet == two.quiet
        np.testing.assert_array_equal(one.channel, two.channel)
        np.testing.assert_allclose(one.sigmas[marked], two.sigmas[marked], rtol=1e-9)
        np.testing.assert_allclose(c.past.median, python.past.median, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(c.past.spread, python.past.spread, rtol=1e-9)
    assert spoke == {Channel.SPIKE, Channel.SHIFT, Channel.RAMP, Channel.CHANGE}
