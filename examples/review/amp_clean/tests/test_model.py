"""Shapes, gradients and checkpoints."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

import checkpoint  # noqa: E402
from data import Events, collate  # noqa: E402
from model import Classifier, spread_of, total_loss  # noqa: E402


def batch():
    events = Events(6)
    return collate([events[index] for index in range(6)])


def test_shapes():
    tokens, keep, _, _ = batch()
    logits, amount = Classifier()(tokens, keep)
    assert logits.shape == (6, 4)
    assert amount.shape == (6,)


def test_loss_falls():
    torch.manual_seed(0)
    tokens, keep, labels, amounts = batch()
    model = Classifier(dropout=0.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = total_loss(model(tokens, keep), labels, amounts, spread_of(amounts))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_every_parameter_has_a_gradient():
    tokens, keep, labels, amounts = batch()
    model = Classifier()
    total_loss(model(tokens, keep), labels, amounts, spread_of(amounts)).backward()
    assert all(value.grad is not None for value in model.parameters())


def test_checkpoint(tmp_path):
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    scaler = torch.amp.GradScaler("cpu")
    path = tmp_path / "last.pt"
    checkpoint.save(path, model, optimizer, scheduler, scaler, 3)
    assert checkpoint.resume(path, model, optimizer, scheduler, scaler) == 4
