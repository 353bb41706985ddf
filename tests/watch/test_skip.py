"""`on_alert="skip"` lets no bad step through, and is not surprised by what it does itself."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.watch.clocks import STILL
from torchstone.core.finding import Severity
from torchstone.watch import Alert, TrainingAlertError, Watch
from torchstone.watch.read.reading import all_finite


def _train(watch: Watch, model: nn.Module, optimizer: Any, bad: range, steps: int) -> None:
    with watch:
        for step in range(steps):
            optimizer.zero_grad()
            loss = (model(torch.randn(16, 8)) - torch.ones(16, 4)).square().mean()
            loss.backward()
            if step in bad:
                next(model.parameters()).grad.view(-1)[3] = float("nan")  # type: ignore[union-attr]
            optimizer.step()
            watch.step(loss.detach())


def _parts(rate: float = 1e-2) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    return model, torch.optim.Adam(model.parameters(), rate)


def _finite(model: nn.Module) -> bool:
    return all(bool(p.isfinite().all()) for p in model.parameters())


@pytest.mark.parametrize("every", [1, 8])
def test_no_step_that_is_not_finite_gets_through(every: int) -> None:
    model, optimizer = _parts()
    watch = Watch(model, optimizer, folder=False, on_alert="skip", clock=STILL)
    watch._budget.every = every
    _train(watch, model, optimizer, range(70, 95), 140)
    assert _finite(model)
    assert watch.summary()["skipped"] == 25


def test_without_the_check_a_thinned_watch_would_let_it_through() -> None:
    model, optimizer = _parts()
    watch = Watch(model, optimizer, folder=False, clock=STILL)
    watch._budget.every = 8
    _train(watch, model, optimizer, range(70, 71), 75)
    assert not _finite(model)


def test_raise_stops_before_such_a_step_too() -> None:
    model, optimizer = _parts()
    watch = Watch(model, optimizer, folder=False, on_alert="raise", clock=STILL)
    watch._budget.every = 8
    with pytest.raises(TrainingAlertError, match="non_finite"):
        _train(watch, model, optimizer, range(70, 71), 75)
    assert _finite(model)


def test_skipped_steps_raise_no_alarms_of_their_own() -> None:
    model, optimizer = _parts()
    watch = Watch(model, optimizer, folder=False, on_alert="skip", clock=STILL)
    _train(watch, model, optimizer, range(300, 340), 420)
    assert {alert.signal for alert in watch.alerts} == {"non_finite"}
    assert len(watch.episodes) == 1


def test_skips_in_a_row_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    model, optimizer = _parts()
    watch = Watch(model, optimizer, folder=False, on_alert="skip", clock=STILL, lang="en")
    _train(watch, model, optimizer, range(20, 30), 40)
    assert caplog.text.count("skipping the optimizer at step") == 1
    assert caplog.text.count("10 optimizer steps skipped in a row: the model no longer learns") == 1
    assert (
        "10 optimizer steps skipped;" in caplog.text
        or "10 optimizer steps skipped\n" in caplog.text
    )


@pytest.mark.parametrize("severity", [Severity.HIGH, Severity.MEDIUM, Severity.LOW])
def test_what_is_only_worth_a_look_stops_nothing(severity: Severity) -> None:
    alert = Alert(3, "equal_units", "", 1.0, severity)
    for action in ("raise", "skip"):
        judge = Watch(*_parts(), folder=False, on_alert=action, clock=STILL)._judge
        assert judge._may_skip(alert) is (action == "skip" and severity is Severity.HIGH)
        stops = action == "raise" and severity is Severity.HIGH
        with pytest.raises(TrainingAlertError) if stops else nullcontext():
            judge._act_on(alert)


@pytest.mark.parametrize(
    ("gradients", "finite"),
    [
        ([], True),
        ([None, torch.ones(3)], True),
        ([torch.ones(3), torch.tensor([1.0, float("inf")])], False),
        ([torch.tensor([float("nan")], dtype=torch.float64)], False),
        ([torch.ones(2, dtype=torch.complex64), torch.ones(3).bfloat16()], True),
        ([torch.eye(3).to_sparse()], True),
        ([torch.empty(0)], True),
    ],
)
def test_finite_gradients_are_told_from_others(
    gradients: list[Tensor | None], finite: bool
) -> None:
    assert all_finite(gradients) is finite


def test_gradients_that_are_read_later_are_checked_before_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On an accelerator a reading arrives some steps later; here its reader reads the host."""
    monkeypatch.setattr("torchstone.watch.measure.parameters._device", lambda _: "accelerator")
    model, optimizer = _parts()
    watch = Watch(model, optimizer, folder=False, on_alert="skip", clock=STILL)
    _train(watch, model, optimizer, range(70, 73), 100)
    [watched] = watch.optimizers.values()
    assert watched.defers
    assert _finite(model)
    assert watch.summary()["skipped"] >= 3
