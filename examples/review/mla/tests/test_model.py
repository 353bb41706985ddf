"""Shapes, learning and decoding."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from config import Config  # noqa: E402
from data import Counting, collate  # noqa: E402
from model import LanguageModel, generate  # noqa: E402
from train import loss_of  # noqa: E402


def batch(count=4):
    items = Counting(count)
    return collate([items[index] for index in range(count)])


def test_shapes():
    tokens, keep, _ = batch()
    logits = LanguageModel(Config())(tokens, keep)
    assert logits.shape == (*tokens.shape, 40)
    assert torch.isfinite(logits).all()


def test_learns():
    torch.manual_seed(0)
    model = LanguageModel(Config(dropout=0.0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = loss_of(model, batch(), torch.device("cpu"))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_generates():
    model = LanguageModel(Config()).eval()
    tokens = generate(model, torch.tensor([[1, 2, 3]]), 5)
    assert tokens.shape == (1, 8)
