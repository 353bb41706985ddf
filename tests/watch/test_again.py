"""What is asked less often than at every step, or used again, must not give other answers."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.watch.clocks import STILL
from torchstone.watch import Watch, watch_training
from torchstone.watch.learn import medians
from torchstone.watch.learn.medians import Medians
from torchstone.watch.read import host_reader
from torchstone.watch.read.fused import Fused, Pool
from torchstone.watch.read.host_reader import HostReader
from torchstone.watch.read.reading import Query

OPTIONS: dict[str, Any] = {
    "folder": False,
    "clock": STILL,
    "warmup_steps": 40,
    "print_every": 10**9,
}
LEVELS = np.array([1, 102, 113, 102, 110, 113, 117, 121], np.uint8)


@pytest.mark.parametrize("kind", ["spread", "ties", "tails", "constant"])
def test_medians_in_c_are_those_of_numpy(
    kind: str, built: Fused, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert built
    draw = np.random.default_rng(0)
    for _ in range(150):
        rows = int(draw.choice([128, 44]))
        columns, count = int(draw.integers(1, 40)), int(draw.integers(1, rows + 1))
        ring = draw.standard_normal((rows, columns))
        if kind == "ties":
            ring = np.round(ring)
        elif kind == "tails":
            ring = np.exp(6 * ring)
        elif kind == "constant":
            ring[:, ::2] = 3.0
        first = int(draw.integers(0, columns))
        span, newest = (first, int(draw.integers(first + 1, columns + 1))), int(draw.integers(999))
        fast = Medians(ring)
        middle = fast(newest, count, span)
        distance = fast(newest, count, span, middle)
        with monkeypatch.context() as patch:
            patch.setattr(medians, "load_fused", lambda: "no compiler")
            slow = Medians(ring)
        np.testing.assert_array_equal(middle, slow(newest, count, span))
        np.testing.assert_array_equal(distance, slow(newest, count, span, middle))


def test_an_array_is_used_again_only_when_nobody_holds_it() -> None:
    pool = Pool(4, np.dtype([("a", "f8"), ("b", "f8")]))
    held = [pool.take().array for _ in range(70)]  # more than it keeps
    assert len({array.ctypes.data for array in held}) == 70
    part = held[0]["b"]
    held.clear()
    again = [pool.take().array for _ in range(64)]
    assert not any(np.shares_memory(array, part) for array in again), "a part of it is held"
    assert len({array.ctypes.data for array in again}) == 64


def test_arrays_come_round(built: Fused) -> None:
    weights = [torch.randn(8), torch.randn(3, 3)]
    reader = HostReader(weights, built)
    places = {reader.sample(weights).ctypes.data for _ in range(20)}
    assert len(places) == 1


def _gradients() -> list[Tensor | None]:
    return [torch.full((6, 4), 2.0), torch.full((5,), 1.0)]


@pytest.mark.parametrize(
    ("odd", "norm", "present"),
    [
        (torch.full((1,), 2.0).expand(6, 4), 101.0, True),
        (torch.full((4, 6), 2.0).t(), 101.0, True),
        (torch.full((6, 4), 2.0, dtype=torch.bfloat16), 101.0, True),
        (torch.full((2, 4), 2.0), 5.0, False),
        (None, 5.0, False),
    ],
)
def test_gradients_that_are_suddenly_other_than_before_are_read_as_they_are(
    odd: Tensor | None, norm: float, present: bool, built: Fused
) -> None:
    reader = HostReader([torch.zeros(6, 4), torch.zeros(5)], built)
    query = Query(LEVELS, np.full(2, 65520.0))
    for update in range(12):
        gradients = _gradients()
        if update % 2:
            gradients[0] = odd
        [reading] = reader.read(update, gradients, query)
        assert reading.whole == (norm if update % 2 else 101.0)
        assert reading.present.tolist() == [present or update % 2 == 0, True]


def _train(
    model: nn.Module, optimizer: torch.optim.Optimizer, steps: int,
    before: Callable[[int], None], loss_of: Callable[[], Tensor], **options: Any,
) -> Watch:  # fmt: skip
    with Watch(model, optimizer, **OPTIONS | options) as watch:
        for step in range(steps):
            before(step)
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            optimizer.step()
            watch.step(loss.detach())
    assert not watch._broken
    return watch


_GIVES_MEMORY_AWAY = """
import torch
from torch import nn
from torchstone.watch import Watch

torch.set_num_threads(1)
model = nn.Linear(4, 2)
model.big = nn.Parameter(torch.randn(2000, 2000))  # large enough to be unmapped when it is freed
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
kept = []

def give_away(*_):
    kept.append(model.big.data.clone())
    model.big.data.untyped_storage().resize_(0)

optimizer.register_step_post_hook(give_away)
with Watch(model, optimizer, folder=False, budget=10) as watch:
    for _ in range(12):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean() + model.big[0].sum()
        loss.backward()
        optimizer.step()
        watch.step(loss.detach())
        model.big.data.untyped_storage().resize_(16_000_000)
        model.big.data.copy_(kept.pop())
    assert not watch._broken
"""


def test_a_storage_that_is_given_away_in_a_step_does_no_harm() -> None:
    command = [sys.executable, "-c", _GIVES_MEMORY_AWAY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_gradient_that_becomes_sparse_in_mid_run_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = nn.Module()
    model.words, model.rest = nn.Embedding(20, 4, sparse=True), nn.Linear(4, 2)
    model.words.weight.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def thaw(step: int) -> None:
        if step == 13:
            model.words.weight.requires_grad_()

    with caplog.at_level(logging.INFO):
        watch = _train(
            model, optimizer, 40, thaw,
            lambda: model.rest(model.words(torch.randint(20, (8,)))).square().mean(),
        )  # fmt: skip
    assert "gradient of 'words.weight' (sparse)" in caplog.text
    assert not watch.alerts


def test_an_empty_parameter_has_a_gradient_too() -> None:
    model = nn.Linear(4, 2)
    model.empty = nn.Parameter(torch.empty(0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watch = _train(
        model, optimizer, 40, lambda _: None,
        lambda: model(torch.randn(8, 4)).square().mean() + model.empty.sum(),
    )  # fmt: skip
    assert not watch.alerts


def test_a_gradient_that_is_negated_lazily_is_read_with_its_sign(built: Fused) -> None:
    values = torch._neg_view(torch.randn(6))
    assert values.is_neg()
    assert values.is_contiguous()
    reader = HostReader([torch.zeros(6)], built)
    for update in range(2):
        [reading] = reader.read(update, [values], Query(LEVELS, np.full(1, 65520.0)))
        assert reading.samples is not None
        np.testing.assert_array_equal(reading.samples[0, :6], values.resolve_neg().numpy())


def test_a_parameter_in_the_place_of_another_is_followed() -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def replace(step: int) -> None:
        if step in (21, 30):
            model.weight = nn.Parameter(torch.randn(2, 4))
            optimizer.param_groups[0]["params"][0] = model.weight

    watch = _train(
        model, optimizer, 45, replace, lambda: model(torch.randn(8, 4)).square().mean()
    )  # fmt: skip
    assert "unchanged_parameter" not in {alert.signal for alert in watch.alerts}


@pytest.mark.parametrize("compiler", [True, False])
def test_weights_in_another_order_have_not_changed(
    compiler: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiler:
        monkeypatch.setattr(host_reader, "load_fused", lambda: "no compiler")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def turn(step: int) -> None:
        if step in (25, 35):
            model.to(memory_format=torch.channels_last if step == 25 else torch.contiguous_format)

    watch = _train(
        model, optimizer, 45, turn, lambda: model(torch.randn(8, 3, 8, 8)).square().mean()
    )  # fmt: skip
    assert "changed_outside" not in {alert.signal for alert in watch.alerts}


def test_passes_of_calls_that_raised_belong_to_no_step() -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    calls = iter(range(1000))

    @watch_training(**OPTIONS)
    def step(batch: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        if next(calls) % 9 == 8:
            raise KeyError("bad batch")
        optimizer.step()
        return loss

    for _ in range(400):
        with contextlib.suppress(KeyError):
            step(torch.randn(8, 4))
    assert "lost_passes" not in {alert.signal for alert in step.watch.alerts}  # type: ignore[attr-defined]


def test_gradients_go_when_the_program_lets_them_go() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with Watch(model, optimizer, **OPTIONS) as watch:
        for _ in range(6):
            loss = model(torch.randn(8, 4)).square().mean()
            loss.backward()
            optimizer.step()
            assert model.weight.grad is not None
            old = weakref.ref(model.weight.grad)
            optimizer.zero_grad()
            assert old() is None
            watch.step(loss.detach())
