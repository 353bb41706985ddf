"""Ordinary healthy trainings whose ends and habits look odd, and are not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.watch.clocks import STILL
from torchstone.watch import Watch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from healthy.optimizers import OPTIMIZERS, ScheduleFree


def _told(
    optimizer: torch.optim.Optimizer, model: nn.Module, steps: int, schedule: object = None,
    evaluate_every: int = 0, forget_train: bool = False,
) -> list[str]:  # fmt: skip
    rule = torch.randn(16, 3)
    watch = Watch(model, optimizer, folder=False, warmup_steps=40, clock=STILL)
    with watch:
        for step in range(steps):
            if evaluate_every and step % evaluate_every == evaluate_every - 1:
                assert isinstance(optimizer, ScheduleFree)
                optimizer.eval()
                if not forget_train:
                    optimizer.train()
            x = torch.randn(32, 16)
            optimizer.zero_grad()
            loss = (model(x) - x @ rule).square().mean()
            loss.backward()
            optimizer.step()
            if schedule is not None:
                schedule.step()  # type: ignore[attr-defined]
            watch.step(loss.detach(), x)
    return [alert.line() for alert in watch.alerts]


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 24), nn.LayerNorm(24), nn.Tanh(), nn.Linear(24, 3))


@pytest.mark.parametrize("name", ["momentum", "AdamW", "Lion"])
@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_the_end_of_a_decay_to_zero_is_no_fault(name: str, kind: str) -> None:
    model, steps = _model(), 260
    optimizer = OPTIMIZERS[name](model.parameters(), 1e-2 if name == "momentum" else 1e-3)
    scheduler: object
    if kind == "cosine":
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    else:  # as long again at next to nothing
        scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1e-9, steps // 2)
    assert _told(optimizer, model, steps, scheduler) == []


def test_a_loss_that_converges_to_the_last_digit_is_no_fault() -> None:
    torch.manual_seed(0)
    model = nn.Linear(16, 3)
    assert _told(torch.optim.SGD(model.parameters(), 0.1), model, 900) == []


def test_an_optimizer_that_switches_modes_changes_nothing_outside() -> None:
    model = _model()
    optimizer = ScheduleFree(model.parameters(), 3e-3)
    assert _told(optimizer, model, 300, evaluate_every=20) == []


def test_weights_that_stay_in_evaluation_mode_are_found() -> None:
    model = _model()
    optimizer = ScheduleFree(model.parameters(), 3e-3)
    told = _told(optimizer, model, 120, evaluate_every=60, forget_train=True)
    assert any("changed_outside" in line for line in told)


def test_a_parameter_that_suddenly_stands_still_late_in_a_decay_is_found() -> None:
    """The rate is low, and far above what rounding takes."""
    model = _model()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 260)
    kept: list[torch.Tensor] = []

    class Undoing:
        def step(self) -> None:
            scheduler.step()
            if scheduler.last_epoch > 220:
                kept.append(model[0].weight.detach().clone())  # type: ignore[index]
                model[0].weight.data.copy_(kept[0])  # type: ignore[index]

    told = _told(optimizer, model, 245, Undoing())
    assert any("unchanged_parameter" in line for line in told)
