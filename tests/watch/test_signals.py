"""Every signal finds its own fault, and is silent on the healthy program."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from tests.watch.toy import Toy
from torchstone.watch import signals
from torchstone.watch.measure.signal import all_signals

FILES = sorted(item.name for item in pkgutil.iter_modules(signals.__path__))
# two processes are needed for these: see test_ranks.py
BY_RANKS = {"replicas"}


@pytest.mark.parametrize("name", [name for name in FILES if name not in BY_RANKS])
def test_a_signal_finds_its_own_fault(name: str) -> None:
    module = importlib.import_module(f"torchstone.watch.signals.{name}")
    toy = Toy()
    if name == "loss_scale":
        toy.use_scaler()
    if name == "token_variety":
        toy.use_tokens()
    if getattr(module, "FROM_START", False):
        found = [a for a in toy.watched(module.fault, 0, 20) if a.signal == module.SIGNAL.name]
        assert found
        return
    # those look at every tenth step, or leave the end of what is easy alone
    at = {"sample": 230, "update": 300}.get(module.SIGNAL.phase, 130)
    alerts = toy.watched(module.fault, at, at + 55)
    assert not [a for a in alerts if a.step <= at], "before the fault"
    found = [alert for alert in alerts if alert.signal == module.SIGNAL.name]
    assert found, [alert.line() for alert in alerts]
    assert found[0].step <= at + 51
    assert sum(alert.opens for alert in alerts) == 1, "one fault, one episode"


@pytest.mark.parametrize("seed", range(3))
def test_the_healthy_program_is_silent(seed: int) -> None:
    assert [alert.line() for alert in Toy(seed).watched(None, steps=500)] == []


def test_every_signal_is_complete() -> None:
    names = [signal.name for signal in all_signals()]
    assert len(names) == len(set(names)) == len(FILES)
    for signal in all_signals():
        assert (signal.limits is None) == bool(signal.check or signal.compare), signal.name
        assert (signal.limits is None) == (signal.value is None), signal.name
        for text in (signal.title, signal.why, signal.remedy):
            assert text.en, signal.name
            assert text.zh, signal.name
