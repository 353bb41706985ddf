"""What is read by address is what was agreed on: other sizes, kinds and freed memory are left alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.watch.clocks import STILL
from torchstone.watch import Watch
from torchstone.watch.listen.inputs import Batches, _digest
from torchstone.watch.measure.call import Batch
from torchstone.watch.read.fused import load_fused
from torchstone.watch.read.host_reader import HostReader
from torchstone.watch.read.reading import Query
from torchstone.watch.read.tensor_summary import address_of, summarise, summarise_rows

LEVELS = np.array([1, 102, 113, 102, 110, 113, 117, 121], np.uint8)
OPTIONS: dict[str, Any] = {"folder": False, "clock": STILL, "warmup_steps": 40}


def _read(parameters: list[Tensor], gradients: list[Tensor | None]) -> Any:
    [reading] = HostReader(parameters).read(0, gradients, Query(LEVELS, np.full(2, 65520.0)))
    return reading


def test_a_gradient_of_another_size_is_not_read() -> None:
    parameters = [torch.zeros(1000), torch.zeros(10)]
    reading = _read(parameters, [torch.ones(1), torch.ones(10)])
    assert reading.present.tolist() == [False, True]
    assert reading.whole == pytest.approx(10.0)


def test_a_gradient_of_another_kind_is_read_as_its_parameter() -> None:
    double = [torch.zeros(1000), torch.zeros(3, dtype=torch.float64)]  # one that is not simple
    reading = _read(double, [torch.ones(1000, dtype=torch.bfloat16), torch.ones(3)])
    assert reading.whole == pytest.approx(1003.0)


def test_a_view_of_memory_that_was_given_away_is_not_read() -> None:
    flat = torch.ones(2000)
    views: list[Tensor | None] = [flat[:1000], flat[1000:]]
    flat.untyped_storage().resize_(0)
    reading = _read([torch.zeros(1000), torch.zeros(1000)], views)
    assert not reading.present.any()
    assert views[1] is not None
    assert views[1].data_ptr() != 0, "the address says nothing"
    assert address_of(views[1]) == 0
    assert _digest(views[1]) == 0


def test_offloaded_weights_do_no_harm() -> None:
    flat = torch.zeros(2000)
    model = nn.Module()
    model.a, model.b = nn.Parameter(flat[:1000]), nn.Parameter(flat[1000:])
    model.rest = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Watch(model, optimizer, **OPTIONS) as watch:
        for step in range(6):
            loss = model.rest(torch.ones(1, 2)).sum()
            if step < 3:
                loss = loss + (model.a + model.b).sum()
            elif step == 3:
                flat.untyped_storage().resize_(0)
                for parameter in (model.a, model.b):
                    parameter.requires_grad_(False)
                    parameter.grad = None
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            watch.step(loss.detach())
        assert watch.steps == 6
        assert not watch._broken


class _Nothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> None:
        return None


def test_a_function_that_gives_no_gradient_breaks_nothing() -> None:
    model = nn.Linear(4, 2)
    other = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([*model.parameters(), other], lr=0.1)
    with Watch(model, optimizer, **OPTIONS) as watch:
        for _ in range(6):
            loss = _Nothing.apply(model(torch.randn(8, 4))).square().mean() + other.square().sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            watch.step(loss.detach())
        assert not watch._broken


def _rate_of_estimate(look: Callable[[Tensor, int], Any]) -> float:
    logits = torch.randn(128, 8000, requires_grad=True)
    labels = torch.randint(0, 8000, (128,))
    F.cross_entropy(logits, labels).backward()
    assert logits.grad is not None
    seen = look(logits.grad, 2048)
    return float(seen.scale * logits.grad.numel() ** 0.5 / float(logits.grad.norm()))


def test_rows_show_the_size_of_a_gradient_over_many_classes() -> None:
    torch.manual_seed(0)
    assert all(0.9 < _rate_of_estimate(summarise_rows) < 1.1 for _ in range(5))
    assert not all(0.5 < _rate_of_estimate(summarise) < 2 for _ in range(5)), (
        "else rows are not needed"
    )


def test_rows_are_the_same_in_c_and_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.randn(300, 50)
    seen = summarise_rows(values, 2048)
    monkeypatch.setattr("torchstone.watch.read.tensor_summary.load_fused", lambda: "no compiler")
    assert summarise_rows(values, 2048) == pytest.approx(seen)
    assert not isinstance(load_fused(), str)


@pytest.mark.parametrize("rows", [96, 100, 200])
def test_all_places_of_a_row_are_seen(rows: int) -> None:
    """The first token of every row is the same one, and no other is."""
    tokens = torch.arange(rows * 32).reshape(rows, 32) + 1
    tokens[:, 0] = 0
    batches = Batches()
    batches.model_called((tokens,), {})
    _, given = batches.finish(Batch())
    assert given.variety > 0.9


def test_another_thread_may_ask_how_it_stands() -> None:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    stop = threading.Event()
    with Watch(model, optimizer, **OPTIONS) as watch:

        def ask() -> None:
            while not stop.wait(0.001):  # the lock goes to whoever asks first
                assert isinstance(watch.alerts, list)
                watch.baseline()

        asking = threading.Thread(target=ask)
        asking.start()
        for _ in range(300):
            loss = model(torch.randn(8, 4)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            watch.step(loss.detach())
        stop.set()
        asking.join()
        assert not watch._broken
