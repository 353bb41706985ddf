import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from data import Windows, make_loads  # noqa: E402
from model import Daily, Forecaster  # noqa: E402


def test_windows():
    loads, seen = make_loads(3, 200)
    past, there, future, reported = Windows(loads, seen, 0, 150)[0]
    assert past.shape == there.shape == (48,)
    assert future.shape == reported.shape == (12,)


def test_shapes():
    hours = Forecaster()(torch.randn(4, 48), torch.ones(4, 48))
    assert hours.shape == (4, 12)
    assert len(Daily()(hours)) == 4
