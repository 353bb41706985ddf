"""Faulty programs, their right fix, and wrong ones: partial, sign flipped, silencing, beside the point."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """A program with one fault. A fix is a new text for the marked lines of `train.py`."""

    name: str
    tool: str
    rule: str
    program: str
    faulty: str
    """The lines as they are; they stand once in the program."""
    right: str
    wrong: tuple[str, ...]
    check: str = ""
    """A check that somebody handed in, for the tool `checks`."""


LOOP = """import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
X, Y = torch.randn(48, 6), torch.randint(3, (48,))
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def main():
    for step in range(6):
        x, y = X[step * 8 : step * 8 + 8], Y[step * 8 : step * 8 + 8]
{body}


if __name__ == "__main__":
    main()
"""
CRASH = Case(
    "a crash", "dryrun", "DR",
    LOOP.format(body='''        hidden = model[0](x.t())
        loss = F.cross_entropy(model[2](hidden.relu()), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()'''),
    "hidden = model[0](x.t())",
    "hidden = model[0](x)",
    (
        "try:\n            hidden = model[0](x.t())\n        except RuntimeError:\n            continue",
        "if x.shape[0] != 6:\n            continue\n        hidden = model[0](x.t())",
        "return\n        hidden = model[0](x.t())",
        "raise SystemExit(0)\n        hidden = model[0](x.t())",
        "hidden = model[0](x.t()[:, :7])",
        "break\n        hidden = model[0](x.t())",
        "hidden = model[0](x)  # noqa",
        "import contextlib\n        with contextlib.suppress(RuntimeError):\n            hidden = model[0](x.t())\n        continue",
    ),
)  # fmt: skip
AVERAGE = Case(
    "an average of weights", "experiments", "EX",
    '''import copy

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
X, Y = torch.randn(48, 6), torch.randint(3, (48,))


class Average:
    def __init__(self, model, decay=0.99):
        self.model = copy.deepcopy(model)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mine, new in zip(self.model.parameters(), model.parameters()):
            mine.mul_(self.decay).sub_(new, alpha=1 - self.decay)


def main():
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    average = Average(model)
    for step in range(6):
        x, y = X[step * 8 : step * 8 + 8], Y[step * 8 : step * 8 + 8]
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)


if __name__ == "__main__":
    main()
''',
    "mine.mul_(self.decay).sub_(new, alpha=1 - self.decay)",
    "mine.mul_(self.decay).add_(new, alpha=1 - self.decay)",
    (
        "mine.mul_(1 - self.decay).sub_(new, alpha=self.decay)",
        "mine.mul_(self.decay).add_(new, alpha=self.decay - 1)",
        "mine.add_(new, alpha=1 - self.decay)",
        "mine.mul_(self.decay)",
        "mine.mul_(1.0)",
        "pass",
        "mine.copy_(mine * self.decay - new * (1 - self.decay))",
        "mine.lerp_(-new, 1 - self.decay)",
        "mine.mul_(self.decay).add_(new.abs(), alpha=1 - self.decay)",
    ),
)  # fmt: skip
METRIC = Case(
    "a metric", "experiments", "EX",
    '''import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, Y = torch.randn(50, 6), torch.randint(3, (50,))
train_loader = DataLoader(TensorDataset(X[:32], Y[:32]), 8, shuffle=True)
val_loader = DataLoader(TensorDataset(X[32:], Y[32:]), 8)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    total, count = 0.0, 0
    for x, y in loader:
        total += F.cross_entropy(model(x), y).item()
        count += 1
    model.train()
    return total / count


def main():
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in train_loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(evaluate(model, val_loader))


if __name__ == "__main__":
    main()
''',
    "        total += F.cross_entropy(model(x), y).item()\n        count += 1",
    "        total += F.cross_entropy(model(x), y).item() * len(y)\n        count += len(y)",
    (
        "        total += F.cross_entropy(model(x), y).item() * len(y)\n        count += 1",
        "        total += F.cross_entropy(model(x), y).item()\n        count += len(y)",
        "        total += F.cross_entropy(model(x), y).item() * 8\n        count += 8",
        "        total += F.cross_entropy(model(x), y).item() / len(y)\n        count += 1",
        "        total = F.cross_entropy(model(x), y).item()\n        count = 1",
        "        total = max(total, F.cross_entropy(model(x), y).item())\n        count = 1",
        "        if len(y) < 8:\n            continue\n        total += F.cross_entropy(model(x), y).item()\n        count += 1",
        "        count += 1",
        "        total, count = 1.0, 1",
    ),
)  # fmt: skip
NORM = Case(
    "rows of zeros", "experiments", "EX",
    '''import torch
from torch import nn

torch.manual_seed(0)
X, Y = torch.randn(48, 6), torch.randn(48, 1)
X[3] = 0


def unit(x):
    return x / x.norm(dim=1, keepdim=True)


def main():
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        x, y = X[step * 8 : step * 8 + 8], Y[step * 8 : step * 8 + 8]
        loss = (model(unit(x)) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
''',
    "return x / x.norm(dim=1, keepdim=True)",
    "return x / x.norm(dim=1, keepdim=True).clamp_min(1e-8)",
    (
        "return x / x.norm(dim=1, keepdim=True).abs()",
        "return x / x.norm(dim=0, keepdim=True).sub(x.norm(dim=0, keepdim=True))",
        "return x / x.square().sum(1, keepdim=True).sqrt()",
        "return (x / x.norm(dim=1, keepdim=True)).double().float()",
        "return x * x.norm(dim=1, keepdim=True).reciprocal()",
        "return (x / x.norm(dim=1, keepdim=True)).clamp(-1, 1)",
        "raise SystemExit(0)",
    ),
)  # fmt: skip
HANDED_IN = Case(
    "a claim of a reader", "checks", "check-",
    '''import torch
from torch import nn

torch.manual_seed(0)


def smooth(values, weight):
    """The exponential average of a list of numbers."""
    last, out = values[0], []
    for value in values:
        last = weight * value + (1 - weight) * last
        out.append(last)
    return out


def main():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(smooth(losses, 0.9)[-1])


if __name__ == "__main__":
    main()
''',
    "last = weight * value + (1 - weight) * last",
    "last = weight * last + (1 - weight) * value",
    (
        "last = weight * value - (1 - weight) * last",
        "last = value",
        "last = weight * last",
        "last = weight * last - (1 - weight) * value",
        "last = (weight * value + (1 - weight) * last) / 2",
        "last = weight * last + (1 - weight) * value if weight == 0.5 else value",
        "raise SystemExit(0)",
        "last = values[0]",
    ),
    check='''import random

from train import smooth


def check():
    for _ in range(3):
        values = [random.uniform(-2, 2) for _ in range(6)]
        weight = random.uniform(0.6, 0.95)
        wanted = values[0]
        for value in values:
            wanted = weight * wanted + (1 - weight) * value
        assert abs(smooth(values, weight)[-1] - wanted) < 1e-9
''',
)  # fmt: skip
RANKS = """import os

import torch
import torch.distributed as dist
from torch import nn
import torch.nn.functional as F


def share(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        {divide}


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(3):
        x = torch.randn(8, 6, generator=generator)
        y = torch.randint(3, (8,), generator=generator)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        share(model)
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""
SUM = Case(
    "gradients of ranks", "experiments", "EX20",
    RANKS.format(divide="parameter.grad.div_(1)"),
    "parameter.grad.div_(1)",
    "parameter.grad.div_(dist.get_world_size())",
    (
        "parameter.grad.mul_(dist.get_world_size())",
        "parameter.grad.div_(-dist.get_world_size())",
        "parameter.grad.div_(dist.get_world_size() ** 2)",
        "parameter.grad.div_(4)",
        "parameter.grad.zero_()",
        "dist.broadcast(parameter.grad, 0)",
        "parameter.grad = parameter.grad.roll(1, 0).div(dist.get_world_size())",
    ),
)  # fmt: skip
GROUP = Case(
    "micro-batches that are summed", "probes", "PR103",
    LOOP.format(body='''        for part in range(2):
            rows = slice(4 * part, 4 * part + 4)
            loss = F.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()'''),
    "loss.backward()",
    "(loss / 2).backward()",
    (
        "(loss * 0).backward()",
        "(-loss / 2).backward()",
        "(loss / 2000).backward()",
        "optimizer.zero_grad()\n            loss.backward()",
        "if part: loss.backward()",
        "(loss / 2).detach().requires_grad_().backward()",
        "(sum(p.sum() for p in model.parameters()) / 2).backward()",
        "(F.mse_loss(model(x[rows]), model(x[rows]).detach()) / 2).backward()",
    ),
)  # fmt: skip
SHARE = Case(
    "shares of an average", "experiments", "EX127",
    AVERAGE.program.replace(AVERAGE.faulty, "mine.mul_(1 - self.decay).add_(new, alpha=self.decay)"),
    "mine.mul_(1 - self.decay).add_(new, alpha=self.decay)",
    "mine.mul_(self.decay).add_(new, alpha=1 - self.decay)",
    (
        "mine.mul_(0.5).add_(new, alpha=0.5)",
        "mine.copy_(new)",
        "mine.mul_(self.decay)",
        "mine.mul_(self.decay).sub_(new, alpha=1 - self.decay)",
    ),
)  # fmt: skip
PADDING = Case(
    "a mean over padding", "experiments", "EX117",
    '''import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
X, Y = torch.randint(1, 20, (48, 7)), torch.randint(3, (48,))
X[torch.arange(7)[None] >= torch.randint(2, 8, (48,))[:, None]] = 0
X[::8] = torch.randint(1, 20, (6, 7))


class Texts(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6, padding_idx=0)
        self.out = nn.Linear(6, 3)

    def forward(self, tokens):
        states = self.embed(tokens)
        seen = (tokens != 0).unsqueeze(-1).float()
        pooled = states.mean(1)
        return self.out(pooled)


def main():
    model = Texts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        x, y = X[step * 8 : step * 8 + 8], Y[step * 8 : step * 8 + 8]
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
''',
    "pooled = states.mean(1)",
    "pooled = (states * seen).sum(1) / seen.sum(1)",
    (
        "pooled = (states * (1 - seen)).sum(1) / (1 - seen).sum(1).clamp_min(1)",
        "pooled = states.mean(1) * 0",
        "pooled = (states * seen).mean(1)",
        "pooled = torch.zeros_like(states[:, 0])",
    ),
)  # fmt: skip
PROBABILITIES = Case(
    "probabilities for a loss", "experiments", "EX128",
    LOOP.format(body='''        given = model(x).softmax(-1)
        loss = F.cross_entropy(given, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()'''),
    "given = model(x).softmax(-1)",
    "given = model(x)",
    (
        "given = model(x).softmax(-1) * 1.0",
        "given = (model(x).softmax(-1) + 0).clone()",
        "given = model(x).exp() / model(x).exp().sum(-1, keepdim=True)",
        "continue",
    ),
)  # fmt: skip
CASES = (CRASH, AVERAGE, METRIC, NORM, HANDED_IN, SUM, GROUP, SHARE, PADDING, PROBABILITIES)
