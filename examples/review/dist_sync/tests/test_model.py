"""The parts that need one process only."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from data import Points  # noqa: E402
from model import Network  # noqa: E402


def test_stages_follow_each_other():
    first, last = Network(dropout=0.0).eval().stages()
    assert last(first(torch.randn(5, 8))).shape == (5,)


def test_learns():
    torch.manual_seed(0)
    points = Points(64)
    network = Network(dropout=0.0)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (network(points.inputs) - points.values).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
