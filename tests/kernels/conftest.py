"""One workshop for all tests of a worker: loading torch and triton once is enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from torchstone.kernels.gates import timing as timing_gate
from torchstone.kernels.sessions import larger
from torchstone.kernels.sessions import stopwatch as timing
from torchstone.kernels.sessions.workshop import Workshop


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    with Workshop(("numpy", "torch", "triton", "numba")) as ready:
        yield ready


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a verdict measures is not asked here: few turns, each as short as a clock can tell."""
    monkeypatch.setattr(timing_gate, "ROUNDS", timing._FEWEST_TURNS)
    monkeypatch.setattr(timing, "_LEAST_SECONDS", 0.002)


@pytest.fixture
def few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step or two of every size: for tests of what has nothing to do with sizes."""
    monkeypatch.setattr(larger, "MOST_WORK", 300)
    monkeypatch.setattr(larger, "MOST_LENGTHS_WORK", 100)
    monkeypatch.setattr(larger, "LONGEST", 3)
    monkeypatch.setattr(larger, "LONG", 0)
