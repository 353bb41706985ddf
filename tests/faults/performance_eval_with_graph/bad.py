import torch
import torch.nn as nn


def train_one(model, loader, criterion, opt):
    model.train()
    for x, y in loader:
        opt.zero_grad()
        criterion(model(x), y).backward()
        opt.step()


def evaluate(model, loader, criterion):
    model.eval()
    total = 0.0
    correct = 0
    for x, y in loader:
        out = model(x)  # FAULT: graph-in-evaluation
        total += criterion(out, y).item() * y.numel()
        correct += (out.argmax(1) == y).sum().item()
    return total / len(loader.dataset), correct / len(loader.dataset)


def saliency(model, x, y):
    # evaluation mode, and a graph on purpose
    model.eval()
    x = x.clone().requires_grad_()
    nn.functional.cross_entropy(model(x), y).backward()
    return x.grad.abs().amax(1)


def main(model, tr, va):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    crit = nn.CrossEntropyLoss()
    for _ in range(10):
        train_one(model, tr, crit, opt)
        print(evaluate(model, va, crit))
