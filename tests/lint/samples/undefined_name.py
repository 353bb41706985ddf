"""More samples of undefined-name."""

BAD = (
    """\
import torch

def fit(loader, step, every):
    tokens = 0
    for index, batch in enumerate(loader):
        tokens += step(batch)
        if index % every == 0:
            print(tokens - start_tokens)
            start_tokens = tokens
    return torch.tensor(tokens)
""",
    """\
import torch

def advance(rollout, normalize):
    if normalize:
        advantages = rollout - rollout.mean()
    return advantages.sum()
""",
    """\
import torch
from torchvision import models

def build(name):
    models = getattr(models, name)()
    return models
""",
    """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.f = nn.Linear(width, width)

    def forward(self, x):
        return self.f(x) / width
""",
)

GOOD = (
    """\
import torch

def fit(loader, step, every):
    tokens, first = 0, True
    for index, batch in enumerate(loader):
        tokens += step(batch)
        if index > 0:
            print(tokens - start_tokens)
        start_tokens = tokens
    values = [value * 2 for value in range(tokens)]
    value = sum(value for value in values)
    return torch.tensor(value)
""",
    """\
import torch

def advance(rollout, normalize):
    advantages = rollout
    if normalize:
        advantages = rollout - rollout.mean()
    boxes = [box.sum() for box in rollout]
    if not boxes:
        raise ValueError
    else:
        first = boxes[0]
    return advantages.sum() + first
""",
    """\
from __future__ import annotations

import torch

def split(data, sizes: Tuple[float, float] = (0.8, 0.2)):
    return torch.utils.data.random_split(data, sizes)
""",
    """\
import torch

def main(loader):
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    for x in loader:
        step(x)
""",
    """\
import torch

def train(loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        loss = sum(model(part).sum() for part in x)
        loss.backward()
        optimizer.step()

if __name__ == "__main__":
    model = torch.nn.Linear(4, 4)
    train([], torch.optim.SGD(model.parameters(), lr=0.1))
""",
    """\
import torch
from settings import *

def train(loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
""",
    """\
import torch

def train(model, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        try:
            profile_step()
        except NameError:
            pass
        model(x).sum().backward()
        optimizer.step()
""",
)
