"""The six checks of the first list, on plain and on disguised programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.seed_rows import Program, levels, program, run

HALF, BCE, LOSS, SOFTMAX, SUM, FUNCTION = "TS101", "TS102", "TS103", "TS104", "TS105", "TS106"

_NET = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 4)
    def forward(self, x):
        return self.f(x)
"""

PROGRAMS = [
    # .half() / .bfloat16()
    program(
        "a forward that returns half", HALF, "HIGH",
        """from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 4)
    def forward(self, x):
        return self.f(x).half()
""",
    ),
    program(
        "a model cast by to(torch.float16) and trained", HALF, "HIGH",
        _NET + """
def main(loader):
    net = Net().cuda()
    net.to(torch.float16)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
""",
    ),
    program(
        "a dtype in a variable", HALF, "HIGH",
        _NET + """
def main(loader, lr):
    dtype = torch.bfloat16
    net = Net().to(device="cuda", dtype=dtype)
    opt = torch.optim.SGD(net.parameters(), lr=lr)
    for x, y in loader:
        opt.zero_grad()
        nn.functional.mse_loss(net(x.to(dtype)), y).backward()
        opt.step()
""",
    ),
    program(
        "type(torch.HalfTensor)", HALF, "HIGH",
        """import torch
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
    def forward(self, x):
        x = x.type(torch.HalfTensor)
        return self.conv(x)
""",
    ),
    program(
        "a cast in a helper of another file", HALF, "HIGH",
        """import torch
from helpers import shrink
def train(net, loader, opt):
    for x, y in loader:
        opt.zero_grad()
        out = shrink(net(x))
        loss = torch.nn.functional.cross_entropy(out, y)
        loss.backward()
        opt.step()
""",
        helpers="""def shrink(t):
    return t.half()
""",
    ),
    program(
        "a frozen half teacher", HALF, "",
        _NET + """
def main(student, loader, opt):
    teacher = Net().cuda().half()
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad = False
    for x, y in loader:
        with torch.no_grad():
            goal = teacher(x)
        opt.zero_grad()
        loss = nn.functional.mse_loss(student(x), goal.float())
        loss.backward()
        opt.step()
""",
    ),
    # binary_cross_entropy
    program(
        "the function under autocast", BCE, "HIGH",
        """import torch
import torch.nn.functional as F
def step(net, x, y, scaler):
    with torch.autocast("cuda"):
        p = net(x).sigmoid()
        loss = F.binary_cross_entropy(p, y)
    scaler.scale(loss).backward()
""",
    ),
    program(
        "a module of losses, called by key", BCE, "HIGH",
        """import torch
from torch import nn
class Losses(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({"mask": nn.BCELoss(), "box": nn.L1Loss()})
    def forward(self, mask, box, goal):
        return self.parts["mask"](mask, goal[0]) + self.parts["box"](box, goal[1])
def train(net, loader, opt, scaler):
    losses = Losses()
    for x, goal in loader:
        with torch.cuda.amp.autocast():
            mask, box = net(x)
            loss = losses(mask, box, goal)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
""",
    ),
    program(
        "a criterion received by the trainer", BCE, "HIGH",
        """import torch
from torch import nn
class Trainer:
    def __init__(self, net, criterion, opt):
        self.net, self.criterion, self.opt = net, criterion, opt
        self.scaler = torch.amp.GradScaler("cuda")
    def step(self, x, y):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.criterion(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad()
def main(net, opt):
    return Trainer(net, nn.BCELoss(), opt)
""",
    ),
    # loss outside autocast
    program(
        "cross entropy after the block", LOSS, "HIGH",
        """import torch
import torch.nn.functional as F
def step(model, x, y, scaler):
    with torch.autocast("cuda"):
        out = model(x)
    loss = F.cross_entropy(out, y)
    scaler.scale(loss).backward()
""",
    ),
    program(
        "a loss helper of another file after the block", LOSS, "HIGH",
        """import torch
from objective import objective
def step(model, x, y, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        features = model.encode(x)
        logits = model.head(features)
    loss = objective(logits, y)
    scaler.scale(loss).backward()
""",
        objective="""import torch.nn.functional as F
def objective(logits, y):
    return F.cross_entropy(logits, y) + 0.1 * F.mse_loss(logits.softmax(-1), y)
""",
    ),
    program(
        "an explicit float32 in front of the loss", LOSS, "",
        """import torch
import torch.nn.functional as F
def step(model, x, y, scaler):
    with torch.autocast("cuda"):
        out = model(x)
    loss = F.cross_entropy(out.float(), y)
    scaler.scale(loss).backward()
""",
    ),
    # softmax
    program(
        "softmax in a network that is cast to half", SOFTMAX, "MEDIUM",
        """import torch
from torch import nn
import torch.nn.functional as F
class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k = nn.Linear(d, d), nn.Linear(d, d)
    def forward(self, x):
        w = self.q(x) @ self.k(x).transpose(-2, -1)
        return F.softmax(w, dim=-1) @ x
def build():
    net = Attention(64).half()
    return net, torch.optim.SGD(net.parameters(), lr=0.1)
""",
    ),
    program(
        "nn.Softmax on values cast by a variable", SOFTMAX, "MEDIUM",
        """import torch
from torch import nn
HALF = torch.float16
class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.Softmax(dim=-1)
    def forward(self, x):
        scores = x.to(HALF) * 3
        return self.act(scores)
""",
    ),
    program(
        "softmax that autocast runs in float32", SOFTMAX, "",
        """import torch
def step(model, x, y, scaler):
    with torch.autocast("cuda"):
        w = torch.softmax(model(x), dim=-1)
        loss = (w - y).abs().sum()
    scaler.scale(loss).backward()
""",
    ),
    # sum / mean
    program(
        "a mean after the block", SUM, "MEDIUM",
        """import torch
def step(model, x, y, scaler):
    with torch.cuda.amp.autocast():
        out = model(x)
    loss = ((out - y) ** 2).mean()
    scaler.scale(loss).backward()
""",
    ),
    program(
        "a sum in a helper that gets half values", SUM, "MEDIUM",
        """import torch
from reduce import total
def step(model, x, scaler):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = model(x)
    scaler.scale(total(out)).backward()
""",
        reduce="""import torch
def total(values):
    return torch.sum(values)
""",
    ),
    # custom autograd functions
    program(
        "a plain Function applied under autocast", FUNCTION, "MEDIUM",
        """import torch
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        result = i.exp()
        ctx.save_for_backward(result)
        return result
    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result
def step(model, x, scaler):
    with torch.autocast("cuda"):
        loss = Exp.apply(model(x)).sum()
    scaler.scale(loss).backward()
""",
    ),
    program(
        "a Function behind a module of another file", FUNCTION, "MEDIUM",
        """import torch
from swish import Swish
def train(net, loader, opt, scaler):
    head = Swish()
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = (head(net(x)) - y).abs().mean()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
""",
        swish="""import torch
from torch import nn
from torch.autograd import Function
class SwishFunction(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)
    @staticmethod
    def backward(ctx, g):
        x = ctx.saved_tensors[0]
        s = torch.sigmoid(x)
        return g * (s * (1 + x * (1 - s)))
class Swish(nn.Module):
    def forward(self, x):
        return SwishFunction.apply(x)
""",
    ),
    program(
        "a Function in a project without autocast", FUNCTION, "",
        """import torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x @ x
    @staticmethod
    def backward(ctx, g):
        return g @ g
def step(x):
    Double.apply(x).sum().backward()
""",
    ),
]  # fmt: skip


@pytest.mark.parametrize("item", PROGRAMS, ids=[item.what for item in PROGRAMS])
def test_row(item: Program, tmp_path: Path) -> None:
    assert levels(item, tmp_path) == ({item.level} if item.level else set())


HARMLESS = [item for item in PROGRAMS if not item.level]


@pytest.mark.parametrize("item", HARMLESS, ids=[item.what for item in HARMLESS])
def test_strict_shows_what_was_thought_harmless(item: Program, tmp_path: Path) -> None:
    found = [f for f in run(item, tmp_path, strict=True).findings if f.rule == item.rule]
    assert found
    for finding in found:
        assert "thought harmless" in finding.why.say("en")
        assert "被认为无害" in finding.why.say("zh")
