"""HIGH needs facts: what a rule takes for granted is MEDIUM, or not said at all."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions


class Case(NamedTuple):
    """A small program, and how severe a rule finds it; "" where it keeps quiet."""

    what: str
    rule: str
    severity: str
    files: dict[str, str]


CASES: list[Case] = []


def program(what: str, rule: str, severity: str, **files: str) -> None:
    CASES.append(Case(what, rule, severity, {f"{name}.py": text for name, text in files.items()}))


# an optimizer that is known, passed in, or handed away
_NEVER_CLEARED = """import torch
{start}
def fit({given}):
    {made}
    for x, y in data:
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
"""
program(
    "an optimizer of torch that is never cleared",
    "TS201",
    "HIGH",
    main=_NEVER_CLEARED.format(
        start="", given="net, data", made="opt = torch.optim.Adam(net.parameters())"
    ),
)
program(
    "an optimizer that somebody else gets",
    "TS201",
    "MEDIUM",
    main=_NEVER_CLEARED.format(
        start="from elsewhere import attach",
        given="net, data",
        made="opt = torch.optim.Adam(net.parameters()); attach(opt)",
    ),
)
program(
    "an optimizer from nowhere",
    "TS201",
    "MEDIUM",
    main=_NEVER_CLEARED.format(start="", given="net, data, opt", made="pass"),
)
program(
    "an optimizer that the caller in another file made",
    "TS201",
    "HIGH",
    fitting=_NEVER_CLEARED.format(start="", given="net, data, opt", made="pass"),
    main="""import torch
from fitting import fit
def main(net, data):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    fit(net, data, opt)
""",
)

# what the model is made of decides whether its mode matters
_LEFT_ON = """import torch
from torch import nn
{start}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        {part}
    def forward(self, x):
        return self.a(x)
def score(net, data):
    net.eval()
    return sum(net(x).sum() for x in data)
def main(data, val):
    net = Net().cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net.train()
    for epoch in range(3):
        for x in data:
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()
        score(net, val)
"""
program(
    "left in eval() with dropout",
    "TS205",
    "HIGH",
    main=_LEFT_ON.format(start="", part="self.d = nn.Dropout(0.1)"),
)
program(
    "left in eval() where both modes are one", "TS205", "", main=_LEFT_ON.format(start="", part="")
)
program(
    "left in eval() with a part from elsewhere",
    "TS205",
    "MEDIUM",
    main=_LEFT_ON.format(start="from elsewhere import Block", part="self.b = Block(4)"),
)

# DDP has nothing to broadcast without buffers
_ON_ONE = """import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = {layer}
    def forward(self, x):
        return self.a(x)
def main(val):
    net = DDP(Net().cuda())
    if dist.get_rank() == 0:
        for x in val:
            net(x)
"""
program(
    "run on one rank, with batch norm",
    "TS416",
    "HIGH",
    main=_ON_ONE.format(layer="nn.BatchNorm1d(4)"),
)
program(
    "run on one rank, nothing to broadcast",
    "TS416",
    "",
    main=_ON_ONE.format(layer="nn.Linear(4, 4)"),
)
program("run on one rank, made elsewhere", "TS416", "MEDIUM", main=_ON_ONE.format(layer="Block(4)"))

# binary cross entropy and autocast
_BCE = """import torch
from torch import nn
def measure(net, data):
    loss_fn = nn.BCELoss()
    return [loss_fn(net(x), y) for x, y in data]
def fit(net, data, scaler, opt, val):
    loss_fn = nn.BCEWithLogitsLoss()
    for x, y in data:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = loss_fn(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    {call}
"""
program("two losses of one name", "TS102", "", main=_BCE.format(call="measure(net, val)"))
program(
    "measured under autocast",
    "TS102",
    "HIGH",
    main=_BCE.format(call='with torch.autocast("cuda"): measure(net, val)'),
)
program("nobody is seen to call it", "TS102", "HIGH", main=_BCE.format(call="pass"))

# a loss outside autocast keeps its level whatever it computes
_OUTSIDE = """import torch
import torch.nn.functional as F
def step(model, x, y, scaler):
    with torch.autocast("cuda"):
        out = model(x)
    {loss}
    scaler.scale(loss).backward()
"""
program(
    "a square outside autocast",
    "TS103",
    "HIGH",
    main=_OUTSIDE.format(loss="loss = F.mse_loss(out, y)"),
)
program(
    "a cross entropy outside autocast",
    "TS103",
    "HIGH",
    main=_OUTSIDE.format(loss="loss = F.cross_entropy(out, y)"),
)
program(
    "autocast switched off around the loss",
    "TS103",
    "",
    main=_OUTSIDE.format(
        loss='with torch.autocast("cuda", enabled=False): loss = F.mse_loss(out, y)'
    ),
)

# names that exist under a question only
program(
    "asked in sys.modules",
    "TS501",
    "",
    main="""import sys
import torch
def transform(x):
    if "torch.fft" not in sys.modules:
        return torch.rfft(x, 1)
    return torch.fft.rfft(x)
""",
)

# sums that begin anew with each batch
_ROUNDS = """import torch
def fit(d, g, loader, opt_d, opt_g, rounds):
    {before}
    for x in loader:
        {within}
        for _ in range(rounds):
            opt_d.zero_grad()
            loss_d = d(x).mean()
            loss_d.backward()
            opt_d.step()
            total += loss_d
        print(total / rounds)
"""
program(
    "a sum over all batches",
    "TS314",
    "MEDIUM",
    main=_ROUNDS.format(before="total = 0.0", within="pass"),
)
program(
    "a sum over the rounds of one batch",
    "TS314",
    "",
    main=_ROUNDS.format(before="pass", within="total = 0.0"),
)

# a module kept out of the parameters on purpose
_HIDDEN = """import torch
from torch import nn
class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = {parts}
    def forward(self, x):
        return self.parts[0](x)
"""
program(
    "layers in a list",
    "TS216",
    "HIGH",
    main=_HIDDEN.format(parts="[nn.Linear(4, 4), nn.Linear(4, 4)]"),
)
program("one module in a list", "TS216", "", main=_HIDDEN.format(parts="[nn.Linear(4, 4)]"))

# half without an optimizer
_HALF = """import torch
from torch import nn
net = nn.Linear(4, 4).cuda().half()
{opt}
for x in data:
    {clear}
    net(x).sum().backward()
    {step}
    for p in net.parameters():
        print(p.grad)
"""
program(
    "half weights that an optimizer gets",
    "TS101",
    "HIGH",
    main=_HALF.format(
        opt="opt = torch.optim.SGD(net.parameters(), lr=0.1)",
        clear="opt.zero_grad()",
        step="opt.step()",
    ),
)
program(
    "half weights whose gradients are compared",
    "TS101",
    "",
    main=_HALF.format(opt="", clear="pass", step="pass"),
)

# a rate that nobody sets
_RATE = """import torch
from torch import nn
from torch.nn import functional as F
class Attention(nn.Module):
    def __init__(self, width, rate=0.0):
        super().__init__()
        self.rate = rate
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.rate)
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = Attention({given})
"""
program(
    "dropout of attention with a rate", "TS207", "MEDIUM", main=_RATE.format(given="width, 0.1")
)
program("dropout of attention that is never on", "TS207", "", main=_RATE.format(given="width"))

# the same order in every worker is needed, the same noise is not
_DRAWS = """import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.order = list(range(9))
    def __getitem__(self, i):
        {draw}
        return self.order[i]
loader = DataLoader(Data(), num_workers=4)
"""
program(
    "the same noise in every worker",
    "TS208",
    "HIGH",
    main=_DRAWS.format(draw="i += self.rng.integers(3)"),
)
program(
    "the same order in every worker",
    "TS208",
    "",
    main=_DRAWS.format(draw="self.rng.shuffle(self.order)"),
)

# an inner loop over heads is no loop over the data
_HEADS = """import torch
from torch import nn
def fit(heads, optimizers, loader):
    for x, y in loader:
        {start}
        for head, opt in zip(heads, optimizers):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(head(x), y)
            loss.backward()
            opt.step()
            losses.append(loss)
        print(len(losses))
"""
program("losses of the heads of one batch", "TS314", "", main=_HEADS.format(start="losses = []"))

# a function that the loop calls divides
_ACCUMULATES = """import torch
def compute(net, x, cfg):
    loss = net(x).mean()
    {divide}
    return loss
def fit(net, data, cfg):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for i, x in enumerate(data):
        loss = compute(net, x, cfg)
        loss.backward()
        if (i + 1) % cfg.accumulation_steps == 0:
            opt.step()
            opt.zero_grad()
"""
program("nobody divides", "TS231", "MEDIUM", main=_ACCUMULATES.format(divide="pass"))
program(
    "the callee divides",
    "TS231",
    "",
    main=_ACCUMULATES.format(divide="loss = loss / cfg.accumulation_steps"),
)

# a model that switches gradients off by itself
_JUDGES = """import torch
from torch import nn
class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
    def forward(self, x, mode="train"):
        {region}:
            return self.a(x)
def score(data):
    model = Judge().cuda()
    model.eval()
    return [model(x, mode="test").sum() for x in data] + [run(model, x) for x in data]
def main(data):
    model = Judge()
    model.eval()
    for x in data:
        print(model(x))
"""
program("evaluated with a graph", "TS311", "MEDIUM", main=_JUDGES.format(region="if mode"))
program(
    "evaluated by a model without one",
    "TS311",
    "",
    main=_JUDGES.format(region="with torch.no_grad()"),
)

# where an autograd.Function is applied
_FUNCTION = """import torch
class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w
    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.t(), x.t() @ grad
def apply(x, w):
    {region}:
        return Product.apply(x, w)
def other(net, x):
    with torch.autocast("cuda"):
        return net(x)
"""
program(
    "applied under autocast",
    "TS106",
    "MEDIUM",
    main=_FUNCTION.format(region='with torch.autocast("cuda")'),
)
program(
    "applied with autocast switched off",
    "TS106",
    "",
    main=_FUNCTION.format(region='with torch.autocast("cuda", enabled=False)'),
)
program(
    "applied where nobody can tell",
    "TS106",
    "MEDIUM",
    main=_FUNCTION.format(region="if x is not None"),
)

# a move to the device that a parameter is on gives the parameter back
_MOVED = """import torch
from torch import nn
class Scale(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3)).{move}
    def forward(self, x):
        return x * self.scale
"""
program("a parameter moved for sure", "TS222", "MEDIUM", main=_MOVED.format(move="cuda()"))
program("a parameter moved somewhere", "TS222", "MEDIUM", main=_MOVED.format(move="to(device)"))


# workers that no loader starts, also in the files that make the dataset
_OWN_GENERATOR = """import random
from torch.utils.data import Dataset

class Rows(Dataset):
    def __init__(self, rows):
        self.rows, self.rng = rows, random.Random(911)
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, i):
        return self.rows[self.rng.randint(0, i)]
"""
_LOADS = """from torch.utils.data import DataLoader
from rows import Rows

loader = DataLoader(Rows([1, 2]), batch_size=2, num_workers={workers})
"""
for workers, severity in ((0, ""), (4, "MEDIUM")):
    program(
        f"a generator of a dataset whose loader, in another file, has {workers} workers",
        "TS208",
        severity,
        rows=_OWN_GENERATOR,
        main=_LOADS.format(workers=workers),
    )

# an engine goes backward with the loss that it is given
_ENGINE = """import torch

def fit(self, data):
    for x in data:
        loss = self.model(x.cuda()).mean()
        {backward}
        if {asked}:
            self.wrapped.step()
"""
program(
    "a branch on an engine that takes the loss",
    "TS304",
    "",
    main=_ENGINE.format(backward="self.wrapped.backward(loss)", asked="self.wrapped"),
)
program(
    "a branch on the loss",
    "TS304",
    "MEDIUM",
    main=_ENGINE.format(backward="self.wrapped.backward(loss)", asked="loss > 5"),
)

# a model that is only asked for its shapes
_TRIED = """import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = torch.nn.Dropout(0.5)
    def forward(self, x):
        return self.drop(x)

def evaluate({given}):
    net = Net().cuda()
    img = {made}
    out = net(img)
    print(out.shape)
"""
program(
    "a model tried out on made-up numbers",
    "TS229",
    "",
    main=_TRIED.format(given="", made="torch.randn(4, 3, 32, 32).cuda()"),
)
program(
    "a model tested on a picture",
    "TS229",
    "MEDIUM",
    main=_TRIED.format(given="picture", made="picture.cuda()"),
)

# a sum over micro-batches ends with the step
_SUMMED = """import torch

def train(net, data, opt, n):
    total = 0
    for i in range(n):
        loss = net(next(data)).mean()
        (loss / n).backward()
        total += loss
{inside}    opt.step()
    return float(total)
"""
program("a sum over the micro-batches of one step", "TS314", "", main=_SUMMED.format(inside=""))
program(
    "a sum over all steps",
    "TS314",
    "MEDIUM",
    main=_SUMMED.format(inside="        opt.step()\n        opt.zero_grad()\n"),
)


# what is loaded and lives on no device
_RESUMED = """import random
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
state = torch.load("checkpoint_state.pt")
{use}
"""
for use, severity in (
    ('random.setstate(state["python"])', ""),
    ("lr_scheduler.load_state_dict(state)", ""),
    ("model.load_state_dict(state)", "MEDIUM"),
):
    program(f"loaded for {use}", "TS418", severity, main=_RESUMED.format(use=use))


@pytest.mark.parametrize("case", CASES, ids=[case.what for case in CASES])
def test_case(case: Case, tmp_path: Path) -> None:
    for name, text in case.files.items():
        (tmp_path / name).write_text(text)
    report = check(CheckOptions(paths=(str(tmp_path),), select=(case.rule,), no_cache=True))
    found = {item.severity.value for item in report.findings}
    assert found == ({case.severity} if case.severity else set())
