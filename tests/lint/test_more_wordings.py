"""Faults that stand in other places than their rules first looked at, each beside a twin that is right."""

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


def twins(what: str, rule: str, bad: str, good: str, **more: str) -> None:
    for word, text in (("wrong", bad), ("right", good)):
        files = {f"{name}.py": source for name, source in {**more, "main": text}.items()}
        CASES.append(Case(f"{what}, {word}", rule, word == "wrong", files))


_NET = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.d = nn.Linear(4, 4), nn.Dropout(0.1)
    @torch.no_grad()
    def generate(self, x, n):
        for _ in range(n):
            x = self(x)
        return x
    def forward(self, x):
        return self.d(self.a(x))
"""
_FIT = """def fit(net, data, val):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        {train}
        for x, y in data:
            opt.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            opt.step()
        {evaluate}
def main(data, val):
    fit(Net(), data, val)
"""
_INLINE = """with torch.no_grad():
            {switch}
            for x, y in val:
                print(nn.functional.mse_loss(net(x), y))"""
twins(
    "validated in the function that trains",
    "TS229",
    _NET + _FIT.format(train="pass", evaluate=_INLINE.format(switch="pass")),
    _NET + _FIT.format(train="net.train()", evaluate=_INLINE.format(switch="net.eval()")),
)
twins(
    "generates with a model that came in",
    "TS229",
    _NET + _FIT.format(train="pass", evaluate="print(net.generate(val, 3))"),
    _NET + _FIT.format(train="net.train()", evaluate="net.eval(); print(net.generate(val, 3))"),
)
twins(
    "a class that a package passes on with a star",
    "TS229",
    """import torch
from nets import Net
def main(path, data):
    net = Net()
    net.load_state_dict(torch.load(path))
    with torch.no_grad():
        for x in data:
            print(net(x))
""",
    """import torch
from nets import Net
def main(path, data):
    net = Net()
    net.load_state_dict(torch.load(path))
    net.eval()
    with torch.no_grad():
        for x in data:
            print(net(x))
""",
    nets="from inner import *\n",
    inner=_NET,
)
_LOOP = """import torch
from torch import nn
{start}
def fit(net, data):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    {before}
    for x, y in data:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        {after}
"""
_HISTORY = "class History:\n    def __init__(self):\n        self.rows = []\n    def add(self, v):\n        self.rows.append(v)"
twins(
    "an object that keeps a list of losses",
    "TS314",
    _LOOP.format(start=_HISTORY, before="h = History()", after="h.add(loss)"),
    _LOOP.format(start=_HISTORY, before="h = History()", after="h.add(loss.item())"),
)
_BUFFER = """import torch
from torch import nn
class Rope(nn.Module):
    def __init__(self, dim{more}):
        super().__init__()
        {keep}
    def forward(self, t):
        return torch.outer(t, self.freqs)
"""
twins(
    "an annotated attribute",
    "TS230",
    _BUFFER.format(more="", keep="self.freqs: torch.Tensor = torch.arange(0, dim, 2).float()"),
    _BUFFER.format(more="", keep="self.register_buffer('freqs', torch.arange(0, dim, 2).float())"),
)
twins(
    "an optional tensor",
    "TS230",
    _BUFFER.format(
        more=", w: list[float] | None = None",
        keep="self.freqs = torch.tensor(w) if w is not None else None",
    ),
    _BUFFER.format(
        more=", w: float | None = None",
        keep="self.freqs = torch.tensor(w) if w is not None else None",
    ),
)
_EPOCHS = """import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
class Trainer:
    def __init__(self, data, net):
        self.sampler = DistributedSampler(data)
        self.loader = DataLoader(data, sampler=self.sampler)
        self.net, self.opt = net, torch.optim.SGD(net.parameters(), lr=0.1)
    def once(self):
        for x in self.loader:
            self.opt.zero_grad()
            self.net(x).sum().backward()
            self.opt.step()
    def run(self):
        {loop}:
            {tell}
            self.once()
"""
twins(
    "epochs that a method runs",
    "TS404",
    _EPOCHS.format(loop="for e in range(3)", tell="pass"),
    _EPOCHS.format(loop="for e in range(3)", tell="self.sampler.set_epoch(e)"),
)
twins(
    "epochs of a while loop",
    "TS404",
    _EPOCHS.format(loop="while self.steps < 9", tell="pass"),
    _EPOCHS.format(loop="while self.steps < 9", tell="self.sampler.set_epoch(self.steps)"),
)
_WRAPPED = """import torch
from torch.nn.parallel import DistributedDataParallel as DDP
def bare(m):
    return m.module if hasattr(m, "module") else m
def fit(net, data):
    net = DDP(net.cuda())
    core = bare(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in data:
        loss = {model}(x).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    torch.save(core.state_dict(), "net.pt")
"""
twins(
    "a wrapper opened into a name",
    "TS414",
    _WRAPPED.format(model="core"),
    _WRAPPED.format(model="net"),
)
twins(
    "the logarithm of a clamped softmax",
    "TS125",
    "import torch\ndef f(x):\n    return x.softmax(-1).clamp(min=1e-8).log()\n",
    "import torch\ndef f(x):\n    return x.log_softmax(-1)\n",
)
_CLIPS = """import torch
from accelerate import Accelerator
def fit(net, data, opt):
    acc = Accelerator(gradient_accumulation_steps=4)
    for x in data:
        with acc.accumulate(net):
            acc.backward(net(x).mean())
            {clip}
            opt.step()
            opt.zero_grad()
"""
twins(
    "clipping under another name of the accelerator",
    "TS233",
    _CLIPS.format(clip="acc.clip_grad_norm_(net.parameters(), 1.0)"),
    _CLIPS.format(clip="if acc.sync_gradients: acc.clip_grad_norm_(net.parameters(), 1.0)"),
)
_TRIES = """import torch
def fit(net, data, opt):
    for x in data:
        try:
            net(x).sum().backward()
            opt.step()
            opt.zero_grad()
        except RuntimeError:
            torch.cuda.empty_cache()
            {handle}
"""
twins(
    "an error that is swallowed",
    "TS129",
    _TRIES.format(handle="pass"),
    _TRIES.format(handle="opt.zero_grad()"),
)
_ARMS = """import torch
def fit(net, data, opt):
    scaler = torch.amp.GradScaler()
    for x in data:
        opt.zero_grad()
        scaler.scale(net(x).sum()).backward()
        scaler.unscale_(opt)
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        if not torch.isfinite(norm):
            print("skipped")
            {update}
        else:
            scaler.step(opt)
            scaler.update()
"""
twins(
    "an arm without update",
    "TS129",
    _ARMS.format(update="pass"),
    _ARMS.format(update="scaler.update()"),
)
_THROUGH = """import torch
class Trainer:
    def score(self, batch):
        return self.model["net"](batch).mean().item()
    def validate(self):
        for key in self.model.keys():
            self.model[key].eval()
        for batch in self.val:
            {region}:
                self.score(batch)
"""
twins(
    "a graph in a function that the evaluation calls",
    "TS311",
    _THROUGH.format(region="if batch is not None"),
    _THROUGH.format(region="with torch.no_grad()"),
)
_SCALES = """import torch
from torch import nn
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
    def forward(self, x):
        scale = 1.0
        {choose}
        return x + scale * self.a(x)
"""
twins(
    "a scale that chance chooses",
    "TS235",
    _SCALES.format(choose="scale = 1.0 if torch.rand(()).item() <= 0.9 else 0.1"),
    _SCALES.format(choose="if self.training: scale = 1.0 if torch.rand(()).item() <= 0.9 else 0.1"),
)
_BRANCHES = """import torch
def fit(net, data, mixed):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in data:
        if mixed:
            {clear}
            net.mixed(x).sum().backward()
            opt.step()
        else:
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()
"""
twins(
    "cleared in the other branch only",
    "TS201",
    _BRANCHES.format(clear="pass"),
    _BRANCHES.format(clear="opt.zero_grad()"),
)
_LOOKED_UP = """import torch
from torch import nn
class Trainer(nn.Module):
    def update(self, index):
        opt = getattr(self, f"opt{{index}}")
        scaler = getattr(self, f"scaler{{index}}")
        {unscale}
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
"""
twins(
    "a scaler that is looked up",
    "TS107",
    _LOOKED_UP.format(unscale="pass"),
    _LOOKED_UP.format(unscale="scaler.unscale_(opt)"),
)

_LOADED = """def main(path, data):
    model = load(path)
    for x in data:
        {region}:
            print(model(x).shape)
"""
_LOADS = """import torch
from torch import nn
def load(path):
    model = nn.Linear(4, 4)
    model.load_state_dict(torch.load(path))
    model.eval()
    return model
"""
twins(
    "a graph behind a function that loads for evaluation",
    "TS311",
    _LOADS + _LOADED.format(region="if x is not None"),
    _LOADS + _LOADED.format(region="with torch.no_grad()"),
)
_ARRAYS = """import torch
def score(model, data):
    model.eval()
    rows = []
    for x in data:
        out = model(x)
        rows.append({array})
    return rows
"""
twins(
    "an answer that could not become an array with its graph",
    "TS311",
    _ARRAYS.format(array="out.detach().cpu().numpy()"),
    _ARRAYS.format(array="out.cpu().numpy()"),
)
_PER_RANK = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
def main(net, rank, folder):
    dist.init_process_group("nccl")
    net = DistributedDataParallel(net.cuda(rank))
    state = torch.load(folder + {name})
    net.load_state_dict(state)
"""
twins(
    "a checkpoint for each rank",
    "TS418",
    _PER_RANK.format(name="'/state.pt'"),
    _PER_RANK.format(name="f'/state_{rank}.pt'"),
)
_FOREIGN = """import {framework}
def fit(net, data, opt):
    for x in data:
        loss = net(x.cuda())
        loss.backward()
        opt.step()
        print(loss.item())
"""
twins(
    "a program of another framework",
    "TS301",
    _FOREIGN.format(framework="torch"),
    _FOREIGN.format(framework="paddle"),
)
_TRIED = """import torch
from torch import nn
class Loss(nn.Module):
    def forward(self, x):
        return x.mean()
if __name__ == "__main__":
    loss, x = Loss(), torch.rand(4, requires_grad=True, device="cuda")
    opt = torch.optim.Adam([x])
    {loop}:
        opt.zero_grad()
        out = loss(x)
        out.backward()
        opt.step()
        print(out.item())
"""
twins(
    "a module that is tried out",
    "TS301",
    _TRIED.format(loop="for x in loader"),
    _TRIED.format(loop="for _ in range(9)"),
)
_HOST = """import torch
def join(a, b):
    return torch.cat([a, b])[: a.max().item()]
def fit(net, data):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for a, b in data:
        {before}
        x = join(a, b)
        {after}
        opt.zero_grad()
        net(x).sum().backward()
        opt.step()
"""
twins(
    "a batch that is still on the host",
    "TS301",
    _HOST.format(before="a, b = a.cuda(), b.cuda()", after="pass"),
    _HOST.format(before="pass", after="x = x.cuda()"),
)
_SAMPLES = """import torch
from torch import nn
from accelerate import Accelerator
class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.d = nn.Linear(4, 4), nn.Dropout(0.1)
    @torch.no_grad()
    def sample(self, x):
        self.eval()
        return self(x)
    def forward(self, x):
        return self.d(self.a(x))
class Trainer:
    def __init__(self, model: Flow):
        self.accelerator = Accelerator()
        self.model = model
    def fit(self, data, opt):
        self.model.train()
        for i, x in enumerate(data):
            opt.zero_grad()
            self.accelerator.backward(self.model(x).sum())
            opt.step()
            if i % 100 == 0:
                print(self.accelerator.unwrap_model(self.model).sample(x))
                {again}
"""
twins(
    "samples of an unwrapped model that switches itself",
    "TS205",
    _SAMPLES.format(again="pass"),
    _SAMPLES.format(again="self.model.train()"),
)
_WINDOW = """import torch
from torch import nn
def spectrum(x, window):
    return torch.stft(x, 64, window=window)
class Loss(nn.Module):
    def __init__(self, name, size):
        super().__init__()
        {keep}
    def forward(self, x):
        return spectrum(x, self.window)
"""
twins(
    "a window that is looked up by name",
    "TS230",
    _WINDOW.format(keep="self.window = getattr(torch, name)(size)").replace(
        "64, window=window", "64, 16, 64, window"
    ),
    _WINDOW.format(keep="self.register_buffer('window', getattr(torch, name)(size))"),
)

twins(
    "options of a loss by their names",
    "TS224",
    "from torch import nn\ndef f(logits, target):\n    return nn.NLLLoss(logits, target)\n",
    "from torch import nn\ndef f(weight=None, size_average=True):\n    return nn.NLLLoss(weight, size_average)\n",
)
_NATIVE = """import torch
def fit(model, opt, scaler, args, native):
    if args.fp16 and native:
        {unscale}
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    elif args.fp16:
        torch.nn.utils.clip_grad_norm_(amp.master_params(opt), 1.0)
    if args.fp16 and native:
        scaler.step(opt)
        scaler.update()
"""
twins(
    "a branch that is left for those without a scaler",
    "TS107",
    _NATIVE.format(unscale="pass"),
    _NATIVE.format(unscale="scaler.unscale_(opt)"),
)
_FREEZES = """import torch
from torch import nn
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
{anew}
for p in net.parameters():
    p.requires_grad = False
"""
twins(
    "another model of the same name is frozen",
    "TS202",
    _FREEZES.format(anew="pass"),
    _FREEZES.format(anew="net = nn.Linear(4, 2)"),
)
_CLOCK = """import time
import torch
def latency(model, x):
    model = model.cuda()
    x = x.cuda()
    start = time.time()
    {run}
"""
twins(
    "a clock that measures",
    "TS325",
    _CLOCK.format(run="model(x)\n    print(time.time() - start)").replace("print(", "taken = ("),
    _CLOCK.format(run="while time.time() - start < 5:\n        model(x)"),
)
_RESUMES = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
class Search:
    def __init__(self, net):
        dist.init_process_group("nccl")
        self.net = DistributedDataParallel(net)
    def load(self, path):
        info = torch.load(path + "/checkpoint.pt")
        {use}
"""
twins(
    "a checkpoint without tensors",
    "TS418",
    _RESUMES.format(use="self.net.load_state_dict(info['net'])"),
    _RESUMES.format(use="self.memory = info['memory']"),
)

_FROZEN = """import torch
from torch import nn
def score(features, head, data):
    features.eval()
    return [head(features(x)) for x in data]
def fit(features, head, data, val, make):
    opt = make({trained}.parameters())
    {trained}.train()
    for i, x in enumerate(data):
        opt.zero_grad()
        head(features(x)).sum().backward()
        opt.step()
        if i % 100 == 0:
            score(features, head, val)
"""
twins(
    "a frozen part that is evaluated again and again",
    "TS205",
    _FROZEN.format(trained="features"),
    _FROZEN.format(trained="head"),
)
_SHARED = """import itertools
import torch
def fit(g, d, data):
    opt_g = torch.optim.Adam(g.parameters())
    opt_d = torch.optim.Adam(d.parameters())
    both = torch.optim.Adam({given})
    for x in data:
        opt_d.zero_grad()
        d(x).sum().backward()
        opt_d.step()
        opt_g.zero_grad()
        d(g(x)).sum().backward()
        opt_g.step()
        (g(x) ** 2).sum().backward()
        both.step()
"""
twins(
    "an optimizer over what the others clear",
    "TS201",
    _SHARED.format(given="x_net.parameters()"),
    _SHARED.format(given="itertools.chain(g.parameters(), d.parameters())"),
)
_SAMPLERS = """import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
def make(data):
    sampler = DistributedSampler(data)
    return DataLoader(data, sampler=sampler), sampler
def tour(data, names):
    for epoch in range(3):
        print(epoch)
"""
_TELLS = """import torch
from main import make
def fit(net, data):
    loader, sampler = make(data)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        {tell}
        for x in loader:
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()
"""
CASES.append(
    Case(
        "a sampler that another file tells",
        "TS404",
        False,
        {"main.py": _SAMPLERS, "fit.py": _TELLS.format(tell="sampler.set_epoch(epoch)")},
    )
)

_AVERAGES = """import torch
def toggle(model, on):
    for p in model.parameters():
        p.requires_grad_(on)
def update(target, source, beta):
    {before}
    for q in target.parameters():
        q.mul_(beta)
def main(a, b):
    update(a, b, 0.9)
"""
twins(
    "averages of a model that a helper freezes",
    "TS209",
    _AVERAGES.format(before="pass").replace("p.requires_grad_(on)", "print(p)"),
    _AVERAGES.format(before="toggle(target, False)").replace(
        "p.requires_grad_(on)", "p.requires_grad_(bool(on))"
    ),
)

_BESIDE_TEST = """import torch
from test import evaluate
def fit(net, data, opt, accumulate):
    for i, x in enumerate(data):
        net(x).sum().backward()
        if {test}:
            opt.step()
            opt.zero_grad()
    evaluate(net)
"""
twins(
    "a program beside a script that tests a model",
    "TS238",
    _BESIDE_TEST.format(test="i % accumulate"),
    _BESIDE_TEST.format(test="(i + 1) % accumulate == 0"),
)

CASES.append(
    Case(
        "a test without parameters",
        "TS229",
        False,
        {"main.py": _NET + "def _test_net():\n    net = Net()\n    print(net(torch.rand(2, 4)))\n"},
    )
)


@pytest.mark.parametrize("case", CASES, ids=[case.what for case in CASES])
def test_case(case: Case, tmp_path: Path) -> None:
    for name, text in case.files.items():
        (tmp_path / name).write_text(text)
    report = check(CheckOptions(paths=(str(tmp_path),), select=(case.rule,), no_cache=True))
    assert not report.gaps
    assert bool(report.findings) == case.fires
