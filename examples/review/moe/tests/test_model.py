"""Shapes, routing and learning."""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parents[1]))

from config import Config  # noqa: E402
from data import Counting, collate  # noqa: E402
from experts import ExpertLayer  # noqa: E402
from model import LanguageModel  # noqa: E402


def test_layer_keeps_the_shape():
    layer = ExpertLayer(Config())
    outputs, (balance, size) = layer(torch.randn(2, 5, 32))
    assert outputs.shape == (2, 5, 32)
    assert balance > 0
    assert size >= 0


def test_experts_are_chosen():
    layer = ExpertLayer(Config())
    _, chosen, _ = layer.router(torch.randn(64, 32))
    assert chosen.shape == (64, 2)
    assert 0 <= int(chosen.min())
    assert int(chosen.max()) < 6


def test_learns():
    torch.manual_seed(0)
    items = Counting(4)
    tokens, targets = collate([items[index] for index in range(4)])
    model = LanguageModel(Config(dropout=0.0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        logits, extra = model(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        (loss + extra).backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
