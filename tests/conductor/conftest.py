"""A small project with faults that the static rules know, and one that stops in a dry run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

MODEL = '''"""A small classifier."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.first = nn.Linear(8, width)
        self.last = nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.dropout(torch.relu(self.first(x)), 0.1)
        return self.last(x)
'''
TRAIN = '''"""Train the classifier on random data."""

import argparse

import torch
import torch.nn.functional as F

from model import Net


def train(steps: int) -> list:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for _ in range(steps):
        x, y = torch.randn(4, 8), torch.randint(4, (4,))
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        history.append(loss)
    return history


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    train(parser.parse_args().steps)
'''
TESTS = '''"""Tests that pass although the code is wrong."""

from model import Net
from train import train
import torch


def test_shape():
    assert Net()(torch.zeros(2, 8)).shape == (2, 4)


def test_runs():
    assert len(train(2)) == 2
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    (root / "model.py").write_text(MODEL)
    (root / "train.py").write_text(TRAIN)
    (root / "tests" / "test_net.py").write_text(TESTS)
    (root / "README.md").write_text("Train with\n\n    python train.py --steps 2\n")
    return root


@pytest.fixture
def digest() -> Callable[[Path], str]:
    """Names, contents and modes of a tree."""

    def of(root: Path) -> str:
        total = hashlib.sha256()
        for path in sorted(root.rglob("*")):
            total.update(str(path.relative_to(root)).encode())
            if path.is_file() and not path.is_symlink():
                total.update(path.read_bytes() + oct(path.stat().st_mode).encode())
        return total.hexdigest()

    return of
