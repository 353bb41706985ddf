"""Faults in other words than the samples of their rules, each beside a twin that is right."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions


class Case(NamedTuple):
    """A small program, and whether a rule has something to say about it."""

    what: str
    rule: str
    fires: bool
    files: dict[str, str]


CASES: list[Case] = []


def program(what: str, rule: str, fires: bool, **files: str) -> None:
    CASES.append(Case(what, rule, fires, {f"{name}.py": text for name, text in files.items()}))


def twins(what: str, rule: str, bad: str, good: str) -> None:
    program(f"{what}, wrong", rule, True, main=bad)
    program(f"{what}, right", rule, False, main=good)


# evaluation
_FID = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3); self.d = nn.Dropout(0.1)
    def forward(self, x):
        return self.d(self.l(x))
@torch.no_grad()
def compute_fid(network, batches):
    %s
    feats = []
    for b in batches:
        feats.append(network(b.cuda()))
    return torch.cat(feats).mean()
def main(batches, data):
    network = Net().cuda()
    opt = torch.optim.Adam(network.parameters())
    for ep in range(3):
        network.train()
        for x, y in data:
            opt.zero_grad(); nn.functional.mse_loss(network(x), y).backward(); opt.step()
        print(compute_fid(network, batches))
"""
twins("metric of a model in training mode", "TS229", _FID % "pass", _FID % "network.eval()")
_GENERATE = """import torch
from torch import nn
class Lm(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3); self.d = nn.Dropout(0.1)
    def forward(self, x):
        return self.d(self.l(x))
    @torch.no_grad()
    def generate(self, idx, n):
        for _ in range(n):
            idx = torch.cat([idx, self(idx).argmax(-1)], 1)
        return idx
def fit(data):
    lm = Lm()
    opt = torch.optim.Adam(lm.parameters())
    for i, (x, y) in enumerate(data):
        opt.zero_grad(); nn.functional.mse_loss(lm(x), y).backward(); opt.step()
        if i %% 100 == 0:
            %s
            print(lm.generate(x[:1], 20))
            lm.train()
"""
twins(
    "generation in the training loop",
    "TS229",
    (_GENERATE % "pass").replace("            lm.train()\n", ""),
    _GENERATE % "lm.eval()",
)
# kept graph
_KEEP = """import torch
class Avg:
    def __init__(self):
        self.total, self.n = 0., 0
    def update(self, v, n=1):
        self.total += v * n
        self.n += n
def fit(model, data, opt, crit):
    meter = Avg()
    logs = {"loss": torch.zeros(())}
    smooth = None
    for x, y in data:
        l = crit(model(x), y)
        opt.zero_grad()
        l.backward()
        opt.step()
        %s
"""
twins(
    "loss in a meter",
    "TS314",
    _KEEP % "meter.update(l, len(x))",
    _KEEP % "meter.update(l.item(), len(x))",
)
twins(
    "loss in a dict",
    "TS314",
    _KEEP % 'logs["loss"] = logs["loss"] + l',
    _KEEP % 'logs["loss"] = logs["loss"] + l.detach()',
)
twins(
    "running mean of the loss",
    "TS314",
    _KEEP % "smooth = l if smooth is None else 0.9 * smooth + 0.1 * l",
    _KEEP % "smooth = l.item() if smooth is None else 0.9 * smooth + 0.1 * l.item()",
)
twins(
    "loss added in place",
    "TS314",
    _KEEP % 'logs["loss"].add_(l)',
    _KEEP % 'logs["loss"].add_(l.detach())',
)
twins(
    "loss in a list of dicts",
    "TS314",
    (_KEEP % 'hist.append({"loss": l, "lr": 0.1})').replace("    smooth = None", "    hist = []"),
    (_KEEP % 'hist.append({"loss": l.item()})').replace("    smooth = None", "    hist = []"),
)
twins(
    "loss in a dict of lists",
    "TS314",
    (_KEEP % 'hist["l"].append(l)')
    .replace("    smooth = None", "    hist = collections.defaultdict(list)")
    .replace("import torch", "import torch, collections"),
    (_KEEP % 'hist["l"].append(l.detach().cpu())')
    .replace("    smooth = None", "    hist = collections.defaultdict(list)")
    .replace("import torch", "import torch, collections"),
)
twins(
    "running mean kept by the object",
    "TS314",
    """import torch
class T:
    def __init__(self, m, o):
        self.m, self.o = m, o
        self.avg_loss = 0.
    def step(self, x, y):
        self.o.zero_grad()
        loss = torch.nn.functional.mse_loss(self.m(x), y)
        loss.backward()
        self.o.step()
        self.avg_loss = 0.99 * self.avg_loss + 0.01 * loss
""",
    """import torch
class T:
    def __init__(self, m, o):
        self.m, self.o = m, o
        self.avg_loss = 0.
    def step(self, x, y):
        self.o.zero_grad()
        loss = torch.nn.functional.mse_loss(self.m(x), y)
        loss.backward()
        self.o.step()
        self.avg_loss = 0.99 * self.avg_loss + 0.01 * loss.detach()
""",
)
# map_location
_RESUME = """import torch, os
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
def run(net, args):
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    if args.resume:
        blob = torch.load(args.resume%s)
        net.load_state_dict(blob["model"])
    return DistributedDataParallel(net.cuda(), device_ids=[local])
"""
twins("resume under DDP", "TS418", _RESUME % "", _RESUME % ', map_location="cpu"')
# buffer
_POSITIONS = """import torch
from torch import nn
class Pos(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        t = torch.arange(n)[:, None] * torch.exp(-torch.arange(0, d, 2) / d)
        %s
    def forward(self, x):
        return x + self.table[: x.size(1)]
"""
twins(
    "table of positions",
    "TS230",
    _POSITIONS % "self.table = torch.cat([t.sin(), t.cos()], -1)",
    _POSITIONS % 'self.register_buffer("table", torch.cat([t.sin(), t.cos()], -1))',
)
# accumulate
_ACCUMULATE = """import torch
def fit(net, data, optimizer, crit, accum):
    for i, (x, y) in enumerate(data):
        loss = crit(net(x), y)%s
        loss.backward()
        if (i + 1) %% accum == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
twins("accumulation by counter", "TS231", _ACCUMULATE % "", _ACCUMULATE % " / accum")
_MICRO_STEPS = """import torch
def fit(net, data, optimizer, crit, cfg, scaler):
    step = 0
    optimizer.zero_grad(set_to_none=True)
    while step < cfg.steps:
        for micro in range(cfg.micro_steps):
            x, y = next(data)
            with torch.autocast("cuda"):
                loss = crit(net(x), y)
            %s
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        step += 1
"""
twins(
    "accumulation by an inner loop",
    "TS231",
    _MICRO_STEPS % "pass",
    _MICRO_STEPS % "loss = loss / cfg.micro_steps",
)
# inference_mode
_GOALS = """import torch
def fit(net, teacher, data, opt, ema):
    for x in data:
        with torch.%s():
            goal = teacher(x)
        loss = torch.nn.functional.mse_loss(net(x), goal)
        opt.zero_grad(); loss.backward(); opt.step()
"""
twins("goal of a teacher", "TS232", _GOALS % "inference_mode", _GOALS % "no_grad")
# skipped step
_SKIP = """import torch
def fit(net, data, opt, scaler, crit):
    for x, y in data:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = crit(net(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        if not torch.isfinite(norm):
            %s
            continue
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
"""
twins("step skipped", "TS129", _SKIP % "print('skip')", _SKIP % "opt.zero_grad(); scaler.update()")
# clip accelerate
_ACCELERATE = """import torch
from accelerate import Accelerator
def fit(net, data, opt, crit):
    accelerator = Accelerator(gradient_accumulation_steps=4)
    net, opt, data = accelerator.prepare(net, opt, data)
    for x, y in data:
        with accelerator.accumulate(net):
            loss = crit(net(x), y)
            accelerator.backward(loss)
            %s
            opt.step()
            opt.zero_grad()
"""
twins(
    "clipping under accelerate",
    "TS233",
    _ACCELERATE % "accelerator.clip_grad_norm_(net.parameters(), 1.0)",
    _ACCELERATE
    % "if accelerator.sync_gradients:\n                accelerator.clip_grad_norm_(net.parameters(), 1.0)",
)
# same loader seed
_SEEDED_LOADER = """import torch, os
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.nn.parallel import DistributedDataParallel as DDP
def main(data, net, cfg):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    g = torch.Generator()
    g.manual_seed(%s)
    loader = DataLoader(data, batch_size=8, shuffle=True, generator=g, num_workers=4)
    net = DDP(net.cuda())
    opt = torch.optim.SGD(net.parameters(), lr=1)
    for x, y in loader:
        opt.zero_grad(); torch.nn.functional.mse_loss(net(x), y).backward(); opt.step()
"""
twins(
    "seed of the loader", "TS419", _SEEDED_LOADER % "cfg.seed", _SEEDED_LOADER % "cfg.seed + rank"
)
# shuffle
_LOADER = """import torch
from torch.utils.data import DataLoader
def go(ds, net, opt):
    dl = DataLoader(ds, 32, num_workers=4%s)
    for ep in range(3):
        for x, y in dl:
            opt.zero_grad(); torch.nn.functional.mse_loss(net(x), y).backward(); opt.step()
"""
twins("training data in order", "TS234", _LOADER % "", _LOADER % ", shuffle=True")
# timing
_BENCH = """import time, torch
def bench(net, x):
    net = net.cuda(); x = x.cuda()
    t0 = time.perf_counter()
    for _ in range(50):
        net(x)
    %s
    return (time.perf_counter() - t0) / 50
"""
twins("timing", "TS325", _BENCH % "pass", _BENCH % "torch.cuda.synchronize()")
# layerdrop
_ENCODER = """import torch, random
from torch import nn
class Enc(nn.Module):
    def __init__(self, layers, p):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.p_skip = p
    def forward(self, x):
        for layer in self.layers:
            if %srandom.random() < self.p_skip:
                continue
            x = layer(x)
        return x
"""
twins("layers left out", "TS235", _ENCODER % "", _ENCODER % "self.training and ")
_PATH = """import torch
from torch import nn
class Path(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate
    def forward(self, x):
        %s
        keep = 1 - self.rate
        m = (torch.rand(x.shape[0], 1, 1, device=x.device) < keep).float()
        return x / keep * m
"""
twins(
    "paths dropped", "TS235", _PATH % "pass", _PATH % "if not self.training:\n            return x"
)
# reductions outside autocast
_REDUCE = """import torch
def f(x, w):
    with torch.autocast("cuda", dtype=torch.float16):
        h = x @ w
        %s
    %s
    return s
"""
twins(
    "sum outside autocast",
    "TS105",
    _REDUCE % ("pass", "s = h.sum()"),
    _REDUCE % ("s = h.sum()", "pass"),
)
twins(
    "mean outside autocast",
    "TS105",
    _REDUCE % ("pass", "s = torch.mean(h, dim=-1)"),
    _REDUCE % ("pass", "s = torch.mean(h.float(), dim=-1)"),
)
# autograd function
_FUNCTION = """import torch
class Sq(torch.autograd.Function):
    @staticmethod
    %s
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w
    @staticmethod
    %s
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.t(), x.t() @ g
def step(x, w):
    with torch.autocast("cuda", dtype=torch.float16):
        return Sq.apply(x, w)
"""
twins(
    "autograd function",
    "TS106",
    (_FUNCTION % ("", "")).replace("    \n", ""),
    _FUNCTION
    % ('@torch.amp.custom_fwd(device_type="cuda")', '@torch.amp.custom_bwd(device_type="cuda")'),
)
program(
    "autograd function in a project with autocast",
    "TS106",
    True,
    fn=(_FUNCTION % ("", "")).replace("    \n", "").split("def step")[0],
    layer="""import torch
from fn import Sq
class Layer(torch.nn.Module):
    def forward(self, x, w):
        return Sq.apply(x, w)
""",
    main="import torch\ndef step(net, x):\n    with torch.autocast('cuda'):\n        return net(x)\n",
)
# set_epoch shuffle config
_SAMPLER = """import torch
from torch.utils.data import DataLoader, DistributedSampler
def go(ds, net, opt, cfg):
    sampler = DistributedSampler(ds, shuffle=cfg.shuffle)
    dl = DataLoader(ds, 32, num_workers=4, sampler=sampler)
    for ep in range(cfg.epochs):
        %s
        for x, y in dl:
            opt.zero_grad(); torch.nn.functional.mse_loss(net(x), y).backward(); opt.step()
"""
twins(
    "set_epoch with shuffle from settings",
    "TS404",
    _SAMPLER % "pass",
    _SAMPLER % "sampler.set_epoch(ep)",
)
program(
    "state dict on one rank",
    "TS416",
    True,
    ck="""import torch
from dist_utils import chief
def store(net, where):
    if not chief():
        return
    torch.save(net.state_dict(), where)
""",
    dist_utils="import torch.distributed as dist\ndef chief():\n    return dist.get_rank() == 0\n",
    main="""from torch.distributed.fsdp import FullyShardedDataParallel
from ck import store
def run(net):
    net = FullyShardedDataParallel(net)
    store(net, 'x.pt')
""",
)
program(
    "state dict on all ranks",
    "TS416",
    False,
    ck="""import torch
from dist_utils import chief
def store(net, where):
    state = net.state_dict()
    if not chief():
        return
    torch.save(state, where)
""",
    dist_utils="import torch.distributed as dist\ndef chief():\n    return dist.get_rank() == 0\n",
    main="""from torch.distributed.fsdp import FullyShardedDataParallel
from ck import store
def run(net):
    net = FullyShardedDataParallel(net)
    store(net, 'x.pt')
""",
)
program(
    "accuracy read in a helper",
    "TS301",
    True,
    mt="def topk(o, y):\n    return (o.argmax(1) == y).float().mean().item()\n",
    main="""import torch
from mt import topk
def fit(net, data, opt, dev):
    net.to(dev)
    for x, y in data:
        x, y = x.to(dev), y.to(dev)
        o = net(x)
        opt.zero_grad(); torch.nn.functional.cross_entropy(o, y).backward(); opt.step()
        acc = topk(o, y)
""",
)
# log softmax eps
twins(
    "log of softmax plus eps",
    "TS125",
    "import torch.nn.functional as F\ndef f(x):\n    return (F.softmax(x, 1) + 1e-8).log()\n",
    "import torch.nn.functional as F\ndef f(x):\n    return F.log_softmax(x, 1)\n",
)
_MODELS = """import torch
def evaluate(models, loader, dev):
    for m in models.values():
        m.eval()
    tot = 0
    %s
        for x, y in loader:
            h = models["enc"](x.to(dev))
            tot += torch.nn.functional.cross_entropy(models["dec"](h), y.to(dev)).item()
    return tot
"""
twins(
    "models in a dict, switched in a loop",
    "TS311",
    _MODELS % "if True:",
    _MODELS % "with torch.no_grad():",
)
twins(
    "models in a dict",
    "TS311",
    """import torch
def validate(nets, loader, dev):
    nets['g'].eval()
    tot = 0
    for x, y in loader:
        out = nets['g'](x.to(dev))
        tot += torch.nn.functional.mse_loss(out, y.to(dev)).item()
    nets['g'].train()
    return tot
""",
    """import torch
def validate(nets, loader, dev):
    nets['g'].eval()
    tot = 0
    with torch.no_grad():
        for x, y in loader:
            out = nets['g'](x.to(dev))
            tot += torch.nn.functional.mse_loss(out, y.to(dev)).item()
    nets['g'].train()
    return tot
""",
)
twins(
    "torch.fft as a function",
    "TS501",
    "import torch\ndef f(x):\n    return torch.fft(x, 2)\n",
    "import torch\ndef f(x):\n    return torch.fft.fft2(x)\n",
)
twins(
    "torch.rfft",
    "TS501",
    "import torch\ndef f(x):\n    return torch.rfft(x, 2, onesided=False)\n",
    "import torch\ndef f(x):\n    return torch.fft.rfft2(x)\n",
)
twins(
    "evaluation in a helper",
    "TS205",
    """import torch
def check(net, val, crit):
    net.eval()
    with torch.no_grad():
        return sum(crit(net(x), y) for x, y in val)
def fit(net, data, val, crit, opt):
    net.train()
    for ep in range(9):
        for i, (x, y) in enumerate(data):
            opt.zero_grad()
            crit(net(x), y).backward()
            opt.step()
            if i % 500 == 0:
                print(check(net, val, crit))
""",
    """import torch
def check(net, val, crit):
    net.eval()
    with torch.no_grad():
        s = sum(crit(net(x), y) for x, y in val)
    net.train()
    return s
def fit(net, data, val, crit, opt):
    net.train()
    for ep in range(9):
        for i, (x, y) in enumerate(data):
            opt.zero_grad()
            crit(net(x), y).backward()
            opt.step()
            if i % 500 == 0:
                print(check(net, val, crit))
""",
)
twins(
    "past the wrapper by a property",
    "TS414",
    """import torch
from torch.nn.parallel import DistributedDataParallel as DDP
class W:
    def __init__(self, net):
        self.net = DDP(net)
    @property
    def bare(self):
        return self.net.module
    def fit(self, data, opt):
        for x in data:
            opt.zero_grad()
            loss = self.bare(x).sum()
            loss.backward()
            opt.step()
""",
    """import torch
from torch.nn.parallel import DistributedDataParallel as DDP
class W:
    def __init__(self, net):
        self.net = DDP(net)
    @property
    def bare(self):
        return self.net.module
    def fit(self, data, opt):
        for x in data:
            opt.zero_grad()
            loss = self.net(x).sum()
            loss.backward()
            opt.step()
        torch.save(self.bare.state_dict(), 'x')
""",
)


_STATE_OF_ACCELERATE = """from accelerate import Accelerator
{imports}
def store(accelerator, path):
    accelerator.save_state(path)

def train(accelerator: Accelerator, path):
    if accelerator.is_main_process:
        store(accelerator, path)
"""
twins(
    "accelerate's state saved on one rank",
    "TS401",
    _STATE_OF_ACCELERATE.format(imports="import torch, deepspeed"),
    _STATE_OF_ACCELERATE.format(imports="import torch"),
)
_DECODES = """import torch
import torch.nn.functional as F

class Guide:
    def decode(self, latents):
        {region}
            return self.autoencoder.decode(latents)

    def picture(self, latents):
        return self.decode(latents.half())

    def train_step(self, x, y):
        with torch.autocast("cuda"):
            return F.mse_loss(self.autoencoder(x), y)
"""
twins(
    "half values for a function that trains",
    "TS101",
    _DECODES.format(region="if True:"),
    _DECODES.format(region="with torch.no_grad():"),
)
_CHANCE = """import torch

def fit(model, loader, optimizer, device):
    for x in loader:
        {chance}
        optimizer.zero_grad()
        model(x.to(device)).mean().backward()
        optimizer.step()
"""
twins(
    "number drawn on the device",
    "TS301",
    _CHANCE.format(chance="skip = torch.rand(1, device=device).item() < 0.1"),
    _CHANCE.format(chance="skip = torch.rand(1).item() < 0.1"),
)
_MATRIX = """import numpy as np
import torch

def validate(model, loader):
    matrix = np.zeros((9, 9))
    {sums}
    return model(torch.from_numpy(matrix).cuda())
"""
twins(
    "float64 from numpy that is no statistic",
    "TS116",
    _MATRIX.format(sums="pass"),
    _MATRIX.format(sums="for x, y in loader:\n        matrix[y] += model(x)"),
)
_RESET = """import torch
from torch import nn

class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        {start}

    def reset_parameters(self):
        self.weight.fill_(1)
"""
twins(
    "weights reset where gradients are on",
    "TS209",
    _RESET.format(start="self.reset_parameters()"),
    _RESET.format(start="pass"),
)
_AVERAGE = """import torch

class Average:
    def __init__(self, model, path):
        self.model = model
        state = torch.load(path)
        self.model.load_state_dict(state)
"""
_MAKES_AVERAGE = """import torch
from torch.nn.parallel import DistributedDataParallel
from average import Average

def main(model, path):
    model = {wrapped}
    return Average(model, path)
"""
program(
    "loaded by a class of a program with ranks", "TS418", True,
    average=_AVERAGE, main=_MAKES_AVERAGE.format(wrapped="DistributedDataParallel(model)"),
)  # fmt: skip
program(
    "loaded by a class of a program without ranks", "TS418", False,
    average=_AVERAGE, main=_MAKES_AVERAGE.format(wrapped="model.cuda()"),
)  # fmt: skip
_EPOCHS = """import torch
from torch.utils.data import DataLoader
from tqdm import tqdm

def run(model, data, optimizer, epochs):
    def one(training):
        loader = DataLoader(data, batch_size=8, num_workers=2{more})
        bar = tqdm(enumerate(loader)) if training else enumerate(loader)
        for i, (x, y) in bar:
            optimizer.zero_grad()
            model(x, y).backward()
            optimizer.step()

    for epoch in range(epochs):
        one(True)
"""
twins(
    "loader under a progress bar",
    "TS234",
    _EPOCHS.format(more=""),
    _EPOCHS.format(more=", shuffle=True"),
)
_DISTILL = """import torch

def distill(student, teacher, x):
    with torch.{region}():
        goal = teacher(x)
    return torch.nn.functional.mse_loss(student(x), goal)
"""
_CALLS_DISTILL = """import torch
from distill import distill

def fit(student, teacher, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        distill(student, teacher, x).backward()
        optimizer.step()
"""
program(
    "goal of a teacher in a loss function", "TS232", True,
    distill=_DISTILL.format(region="inference_mode"), main=_CALLS_DISTILL,
)  # fmt: skip
program(
    "goal of a teacher in a loss function, right", "TS232", False,
    distill=_DISTILL.format(region="no_grad"), main=_CALLS_DISTILL,
)  # fmt: skip

_SPEECH = """from torch.utils.data import Dataset

class Dataset(Dataset):
    def __init__(self, path, sort=True):
        self.path, self.sort = path, sort
"""
_EVALUATE = """import torch
from speech import Dataset

def evaluate(path):
    return Dataset(path, sort=False)
"""
program(
    "class that hides the import of its name", "TS241", False,
    speech=_SPEECH, main=_EVALUATE,
)  # fmt: skip
_ENTROPY = """import torch.nn.functional as F

def entropy(logit, label):
    return F.cross_entropy(logit, label)
"""
_GIVES = """import torch
from losses import entropy

def step(x, label):
    return entropy(torch.randn(4, 3).softmax(-1), label)
"""
program("probabilities that a caller gives", "TS203", True, losses=_ENTROPY, main=_GIVES)
program("probabilities that only a test gives", "TS203", False, losses=_ENTROPY, test_main=_GIVES)

_STRATEGY = """class Strategy:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def backward(self, loss):
        {clear}
        loss.backward()

    def step(self):
        self.optimizer.step()
"""
_GIVEN = """import torch
from torch import nn
from strategy import Strategy

class Trainer:
    def __init__(self, strategy, model):
        self.strategy, self.model = strategy, model

    def fit(self, loader):
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.strategy.backward(loss)
            self.strategy.step()

def main(loader):
    model = nn.Linear(3, 3)
    strategy = Strategy(torch.optim.SGD(model.parameters(), lr=0.1))
    Trainer(strategy, model).fit(loader)
"""
program(
    "gradients that an object given to the constructor never clears", "TS201", True,
    strategy=_STRATEGY.format(clear="pass"), main=_GIVEN,
)  # fmt: skip
program(
    "gradients that an object given to the constructor clears", "TS201", False,
    strategy=_STRATEGY.format(clear="self.optimizer.zero_grad()"), main=_GIVEN,
)  # fmt: skip
_FACTORY = """import torch

def switched(flag):
    def wrap(function):
        def inner(*args):
            with torch.{region}():
                return function(*args)
        return inner
    return wrap

@switched(True)
def evaluate(model, loader):
    model.eval()
    for x in loader:
        print(model(x).argmax())
"""
twins(
    "decorator that a function makes", "TS311",
    _FACTORY.format(region="enable_grad"), _FACTORY.format(region="no_grad"),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.what for case in CASES])
def test_case(tmp_path: Path, case: Case) -> None:
    for name, text in case.files.items():
        (tmp_path / name).write_text(text, "utf-8")
    report = check(CheckOptions(paths=(str(tmp_path),), select=(case.rule,), no_cache=True))
    assert not report.gaps
    assert bool(report.findings) == case.fires
