"""What is asked less often than at every step, or used again, must not give other answers."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from torchstone.watch import Watch, medians
from torchstone.watch.fused import Fused, Pool
from torchstone.watch.host_reader import HostReader, Places
from torchstone.watch.medians import Medians
from torchstone.watch.reading import Query, torch_samples

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
    for beat in range(12):
        gradients = _gradients()
        if beat % 2:
            gradients[0] = odd
        [reading] = reader.read(beat, gradients, query)
        assert reading.whole == (norm if beat % 2 else 101.0)
        assert reading.present.tolist() == [present or beat % 2 == 0, True]


def test_weights_that_a_step_puts_elsewhere_are_found(built: Fused) -> None:
    weights = [torch.randn(50) for _ in range(9)]
    reader = HostReader(weights, built)
    for _ in range(5):
        reader.sample(weights, stepped=True)
    assert not reader.moved
    weights = [weight + 1.0 for weight in weights]
    np.testing.assert_array_equal(reader.sample(weights, stepped=True), torch_samples(weights))
    assert reader.moved
    weights[4] = weights[4] + 1.0  # from now on each of them is asked
    np.testing.assert_array_equal(reader.sample(weights, stepped=True), torch_samples(weights))


def test_one_weight_that_a_step_puts_elsewhere_is_found_before_the_next(built: Fused) -> None:
    weights = [torch.randn(50) for _ in range(9)]
    reader = HostReader(weights, built)
    old = reader.sample(weights)
    weights[0] = weights[0] + 1.0  # the memory it had is not given to others meanwhile
    after = reader.sample(weights, stepped=True)
    np.testing.assert_array_equal(after[0], old[0])
    again = reader.sample_again(weights, after, 0)
    np.testing.assert_array_equal(again, torch_samples(weights))
    assert reader.moved


def test_places_keep_no_memory_of_weights_that_move() -> None:
    places = Places()
    for _ in range(3):
        weights = [torch.randn(8)]
        pointers = np.array([weights[0].data_ptr()], np.uint64)
        places.learn(pointers, weights, whole=True)
    assert not places._alive
    assert places.seem_to_hold(weights)


def test_a_closed_watch_keeps_no_memory_of_weights_that_have_left() -> None:
    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Watch(model, optimizer, folder=None, print_every=10**9) as watch:
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.randn(3, 8)).square().mean().backward()
            optimizer.step()
            watch.step(1.0)
        old = weakref.ref(model.weight.untyped_storage())
        reader = next(iter(watch.actors.values())).reader
        assert isinstance(reader, HostReader)
        assert reader._places._alive
    model.weight.data = torch.zeros(4, 8)
    optimizer.zero_grad()
    assert not reader._places._alive
    assert old() is None
