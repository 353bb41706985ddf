"""Steps that are too short to be read each are read more rarely, from the start and quietly."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.watch.clocks import STILL, Ticking
from torchstone.watch import Watch
from torchstone.watch.after.report import report_of
from torchstone.watch.read.budget import Budget
from torchstone.watch.record.runfile import load_run


def _spend(budget: Budget, step_seconds: float, own_seconds: float, steps: range) -> list[int]:
    found = []
    for step in steps:
        budget.all_seconds += step_seconds
        budget.own_seconds += own_seconds / budget.every
        budget.look(step)
        found.append(budget.every)
    return found


def test_a_short_step_is_read_rarely_from_the_start() -> None:
    budget = Budget(0.1)
    every = _spend(budget, 2e-3, 2.5e-3, range(1, 400))
    assert every[10] == 1
    assert every[11] == 16, "a sixteenth of 125 % is within ten per cent"
    assert set(every[11:]) == {16}
    assert "two of every 32 optimizer steps" in budget.text.en
    assert "2 ms" in budget.text.en


def test_what_the_first_steps_load_does_not_count() -> None:
    budget = Budget(0.1)
    _spend(budget, 1e-3, 1.0, range(1, 4))
    assert set(_spend(budget, 0.1, 2e-3, range(4, 200))) == {1}
    assert budget.text.en == ""


def test_a_millisecond_is_free() -> None:
    assert set(_spend(Budget(0.1), 1e-3, 0.9e-3, range(1, 200))) == {1}


def test_longer_steps_are_read_more_often_again() -> None:
    budget = Budget(0.1)
    _spend(budget, 2e-3, 2.5e-3, range(1, 101))
    assert budget.every == 16
    _spend(budget, 0.2, 2.5e-3, range(101, 401))
    assert budget.every == 1


def test_nothing_is_said_until_the_last_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    model = nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    time = Ticking(1e-3, 1e-3)
    watch = Watch(model, optimizer, folder=tmp_path / "run", clock=time.clock, lang="en")
    with watch:
        for _ in range(120):
            optimizer.zero_grad()
            model(torch.randn(8, 8)).square().mean().backward()
            optimizer.step()
            time.pass_step()
            watch.step(1.0)
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if "%" in line] == lines[-1:]
    assert "optimizer steps are read" in lines[-1]
    assert lines[-1].startswith("[Monitor] finished: 120 steps, no alerts; ")
    run = load_run(tmp_path / "run")
    assert run.summary["read_every"] > 1
    [gap] = [item for item in report_of(run).gaps if item.reason.id == "watch.thinned"]
    assert gap.reason.text.en.startswith("from step ")
    assert "自第" in gap.reason.text.zh


def test_the_last_line_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Watch(model, optimizer, folder=False, clock=STILL, lang="zh") as watch:
        watch.step(1.0)
    watch.close()
    assert caplog.text.count("[Monitor] 结束：共 1 步，没有告警") == 1


def test_a_run_that_ends_at_a_look_still_knows_what_it_cost() -> None:
    budget = Budget(0.1)
    for step in range(1, 101):
        budget.all_seconds += 1.0
        budget.own_seconds += 0.25
        budget.look(step)
    assert budget.own_seconds == 0, "100 is a step at which it looks"
    own, whole = budget.whole_run
    assert (own, whole) == (pytest.approx(24), pytest.approx(96))  # without the first four
