"""The part of the programs for the first list of checks that nothing was tuned on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.seed_rows import Program, levels, program

PROGRAMS = [
    program(
        "bfloat16 on every output of a list of blocks", "TS101", "HIGH",
        """from torch import nn
class Stack(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(n))
    def forward(self, x):
        for block in self.blocks:
            x = block(x).bfloat16()
        return x
""",
    ),
    program(
        "a network cast by a method of its trainer", "TS101", "HIGH",
        """import torch
class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters())
        self.lower()
    def lower(self):
        self.net = self.net.half()
    def run(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            loss = torch.nn.functional.nll_loss(self.net(x), y)
            loss.backward()
            self.opt.step()
""",
    ),
    program(
        "a constant table in half", "TS101", "",
        """import torch
from torch import nn
class Rotary(nn.Module):
    def __init__(self, d):
        super().__init__()
        steps = torch.arange(0, d, 2)
        self.register_buffer("table", (1.0 / 10000 ** (steps / d)).half())
    def forward(self, x):
        return x * self.table
""",
    ),
    program(
        "BCE through functional under another name, in a forward that autocast reaches", "TS102", "HIGH",
        """import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy as bce
class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 1)
    def forward(self, x, y):
        return bce(torch.sigmoid(self.f(x)), y)
def train(loader, scaler, opt):
    net = Detector().cuda()
    for x, y in loader:
        opt.zero_grad()
        with torch.cuda.amp.autocast():
            loss = net(x, y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
""",
    ),
    program(
        "a criterion kept on the object, after the block", "TS103", "HIGH",
        """import torch
from torch import nn
class Engine:
    def __init__(self, net):
        self.net = net
        self.loss = nn.SmoothL1Loss()
        self.scaler = torch.amp.GradScaler("cuda")
    def step(self, batch):
        with torch.amp.autocast("cuda"):
            prediction = self.net(batch["image"])
        value = self.loss(prediction, batch["box"])
        self.scaler.scale(value).backward()
""",
    ),
    program(
        "a tuple of outputs, one of them into the loss", "TS103", "HIGH",
        """import torch
import torch.nn.functional as F
def step(net, x, y, scaler):
    with torch.autocast("cuda"):
        logits, extra = net(x)
    scaler.scale(F.cross_entropy(logits, y)).backward()
    return extra
""",
    ),
    program(
        "log_softmax of a half output after the block", "TS104", "MEDIUM",
        """import torch
def step(net, x, y, scaler):
    with torch.autocast("cuda"):
        logits = net(x)
    scores = logits.log_softmax(dim=-1)
    scaler.scale(-(scores * y).sum()).backward()
""",
    ),
    program(
        "a sum over a model's half output kept in a dict", "TS105", "MEDIUM",
        """import torch
def step(net, x, scaler):
    out = {}
    with torch.autocast("cuda"):
        out["energy"] = net(x)
    energy = out["energy"].sum(dim=1)
    scaler.scale(energy[0]).backward()
""",
    ),
    program(
        "a Function used by a functional wrapper", "TS106", "MEDIUM",
        """import torch
class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        n = x.norm(dim=-1, keepdim=True)
        ctx.save_for_backward(x, n)
        return x / n
    @staticmethod
    def backward(ctx, g):
        x, n = ctx.saved_tensors
        return g / n - x * (g * x).sum(-1, keepdim=True) / n ** 3
def unit(x):
    return _Norm.apply(x)
def step(net, x, y, scaler):
    with torch.autocast("cuda"):
        loss = (unit(net(x)) - y).pow(2).sum()
    scaler.scale(loss).backward()
""",
    ),
    program(
        "a gradient reversal, which autocast does not touch", "TS106", "",
        """import torch
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.alpha, None
def step(net, x, scaler):
    with torch.autocast("cuda"):
        loss = Reverse.apply(net(x), 0.5).abs().sum()
    scaler.scale(loss).backward()
""",
    ),
]  # fmt: skip


@pytest.mark.parametrize("item", PROGRAMS, ids=[item.what for item in PROGRAMS])
def test_row(item: Program, tmp_path: Path) -> None:
    assert levels(item, tmp_path) == ({item.level} if item.level else set())
