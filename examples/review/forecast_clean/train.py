"""Train the forecaster of loads; the best weights are kept."""

import argparse
import copy

import torch
from torch.utils.data import DataLoader

from data import Scaler, Windows, make_loads
from metrics import day_error, masked_error, masked_mean
from model import Daily, Forecaster


def train_epoch(model, daily, loader, optimizer, scheduler):
    model.train()
    for loads, seen, future, reported in loader:
        hours = model(loads, seen)
        loss = masked_mean(hours, future, reported)
        loss = loss + 0.01 * day_error(daily(hours), future, reported)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    error, count = 0.0, 0.0
    for loads, seen, future, reported in loader:
        part, hours = masked_error(model(loads, seen), future, reported)
        error, count = error + part.item(), count + hours.item()
    return error / max(count, 1)


def fit(model, daily, train, held_out, epochs, rate):
    """The best weights by the held-out error, and that error."""
    parameters = [*model.parameters(), *daily.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=rate)
    steps = epochs * len(train)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    best, lowest = copy.deepcopy(model.state_dict()), float("inf")
    for epoch in range(epochs):
        train_epoch(model, daily, train, optimizer, scheduler)
        error = evaluate(model, held_out)
        print(f"epoch {epoch}: held-out error {error:.4f}")
        if error < lowest:
            best, lowest = copy.deepcopy(model.state_dict()), error
    return best, lowest


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--meters", type=int, default=12)
    parser.add_argument("--hours", type=int, default=480)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--output", default="best.pt")
    args = parser.parse_args()
    torch.manual_seed(0)
    loads, seen = make_loads(args.meters, args.hours)
    split = args.hours * 3 // 4
    loads = Scaler(loads, seen, split).scale(loads, seen)
    train = DataLoader(Windows(loads, seen, 0, split), args.batch_size, shuffle=True)
    held_out = DataLoader(Windows(loads, seen, split, args.hours), args.batch_size)
    model, daily = Forecaster(), Daily()
    best, lowest = fit(model, daily, train, held_out, args.epochs, args.rate)
    torch.save({"model": best, "error": lowest}, args.output)


if __name__ == "__main__":
    main()
