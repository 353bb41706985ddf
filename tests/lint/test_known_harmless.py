"""Programs that are right and were once taken to be wrong, each beside a twin that is wrong where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.core.finding import Severity
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions

RIGHT = {
    "a helper tells the sampler": """\
import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

def before_epoch(sampler, epoch):
    sampler.set_epoch(epoch)

def train(model, dataset, optimizer):
    torch.distributed.init_process_group("nccl")
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, sampler=sampler, num_workers=2, pin_memory=True)
    for epoch in range(10):
        before_epoch(sampler, epoch)
        for x, y in loader:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
""",
    "the other ranks make the same collective": """\
import torch
import torch.distributed as dist

def share(obj, rank):
    if rank == 0:
        data = [obj]
        dist.broadcast_object_list(data, src=0)
    else:
        data = [None]
        dist.broadcast_object_list(data, src=0)
    return data[0]

def early(obj, rank):
    if rank == 0:
        dist.barrier()
        return obj
    dist.barrier()
    return None

def sync_save(obj, rank, path):
    if rank == 0:
        torch.save(obj, path)
        dist.barrier()
    elif rank > 0:
        dist.barrier()
""",
    "an override with super() switches gradients off": """\
import torch
class Base:
    def __init__(self, model):
        self.model = model
    def evaluate(self, loader):
        self.model.eval()
        total = 0
        for x in loader:
            total += self.model(x).sum()
        return total

class Real(Base):
    @torch.inference_mode()
    def evaluate(self, loader):
        return super().evaluate(loader)

def main(model, loader):
    return Real(model).evaluate(loader)
""",
    "an optimizer and constant tables in bfloat16": """\
import torch
class Muon(torch.optim.Optimizer):
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                g = p.grad.bfloat16()
                update = g @ g.T
                p.add_(update.float())

class Rotary(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        angle = torch.outer(torch.arange(128), 1.0 / 10000 ** (torch.arange(0, dim, 2) / dim))
        self.cos = angle.cos().bfloat16()
        self.register_buffer("sin", angle.sin().bfloat16())

def train(model, loader):
    opt = Muon(model.parameters(), {})
    for x in loader:
        opt.zero_grad()
        model(x).mean().backward()
        opt.step()
""",
    "the data set draws its own index": """\
import random
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
class Random(Dataset):
    def __init__(self, n):
        self.n = n
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        i = random.randint(0, self.n - 1)
        return torch.zeros(3) + i

def train(model, optimizer):
    loader = DataLoader(Random(10), batch_size=4, num_workers=2, pin_memory=True)
    for epoch in range(10):
        for x in loader:
            optimizer.zero_grad()
            model(x.cuda(non_blocking=True)).sum().backward()
            optimizer.step()
""",
    "no_sync of other libraries": """\
import torch
import deepspeed
from lightning.fabric import Fabric

def train(model, loader, optimizer):
    fabric = Fabric()
    model, optimizer = fabric.setup(model, optimizer)
    for i, x in enumerate(loader):
        loss = model(x).sum() / 4
        with fabric.no_backward_sync(model, enabled=i % 4 != 3):
            fabric.backward(loss)
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()

def train2(model, loader, optimizer):
    engine, *_ = deepspeed.initialize(model=model)
    for x in loader:
        loss = engine(x).sum()
        with engine.no_sync():
            engine.backward(loss)
        engine.step()
""",
    "reads of host tensors": """\
import torch
def train(model, loader, optimizer, lengths):
    model.cuda()
    for x, y, lens in loader:
        n = lens.sum().item()
        ids = torch.randint(0, 10, (4,))
        k = ids[0].item()
        p = torch.rand(1).item()
        optimizer.zero_grad()
        loss = model(x.cuda(non_blocking=True)).sum() / n * k * p
        loss.backward()
        optimizer.step()
""",
    "branches that end the program": """\
import sys
import torch
import torch.distributed as dist
def main(model, loader, rank, args):
    dist.init_process_group("nccl")
    if args.export:
        if rank == 0:
            torch.save(model.state_dict(), "x.pt")
        sys.exit(0)
    if rank != 0 and args.bad:
        sys.exit("bad")
    if args.evaluate:
        model.eval()
        with torch.no_grad():
            for x in loader:
                model(x)
        return
    dist.barrier()
    for x in loader:
        model(x).sum().backward()
""",
    "inference_mode(mode=False)": """\
import torch
def train(model, loader, optimizer):
    for x in loader:
        with torch.inference_mode(mode=False):
            loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def again(model, loader, optimizer):
    for x in loader:
        with torch.inference_mode(False):
            h = model(x)
        optimizer.zero_grad()
        h.sum().backward()
        optimizer.step()

@torch.inference_mode(mode=False)
def third(model, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
""",
}
WRONG = [
    ("a helper tells the sampler", "    sampler.set_epoch(epoch)", "    print(epoch)", "TS404"),
    (
        "the other ranks make the same collective",
        "    elif rank > 0:\n        dist.barrier()\n",
        "",
        "TS401",
    ),
    (
        "an override with super() switches gradients off",
        "    @torch.inference_mode()\n",
        "",
        "TS311",
    ),
    (
        "an optimizer and constant tables in bfloat16",
        "angle = torch.outer(",
        "angle = dim * (",
        "TS101",
    ),
    ("reads of host tensors", "k = ids[0].item()", "k = model(x.cuda()).sum().item()", "TS301"),
    ("inference_mode(mode=False)", "inference_mode(False)", "inference_mode()", "TS232"),
]


def found(folder: Path, source: str) -> set[str]:
    (folder / "main.py").write_text(source, "utf-8")
    report = check(CheckOptions(paths=(str(folder),), no_cache=True))
    assert not report.gaps
    return {item.rule for item in report.findings if item.severity is not Severity.LOW}


@pytest.mark.parametrize("what", RIGHT)
def test_right_programs_are_clean(tmp_path: Path, what: str) -> None:
    assert found(tmp_path, RIGHT[what]) == set()


@pytest.mark.parametrize(("what", "old", "new", "rule"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_twins_are_found(tmp_path: Path, what: str, old: str, new: str, rule: str) -> None:
    assert old in RIGHT[what]
    assert rule in found(tmp_path, RIGHT[what].replace(old, new))


_CHAIN = """\
import torch

def load(path, kind):
    if kind == "ckpt":
        whole = torch.load(path, map_location="cpu", weights_only=True)
        state = whole["state_dict"]
    elif kind == "pt":
        state = torch.load(path, map_location="cpu", weights_only=True)
    else:
        {other}
    return {read}
"""
_ACCUMULATES = """\
import torch

def train(model, batches, optimizer, accumulation_steps, batch_size):
    scaler = torch.amp.GradScaler("cuda")
    print(batch_size * accumulation_steps)
    for _ in range(100):
        for _ in range(accumulation_steps):
            loss = model(next(batches)).mean(){scale}
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
"""
_INDEX = """\
import torch

def pick(scores, boxes, classes):
    _, best = torch.topk(scores.flatten(1), dim=1, k=10)
    rows = best {divide} classes
    return torch.gather(boxes, 1, rows.unsqueeze(2).expand(-1, -1, 4))
"""


@pytest.mark.parametrize(
    ("source", "rule", "fires"),
    [
        (_CHAIN.format(other="raise ValueError(kind)", read='whole["state_dict"]'), "TS239", True),
        (_CHAIN.format(other="raise ValueError(kind)", read="state"), "TS239", False),
        (_CHAIN.format(other="state = None", read="state"), "TS239", False),
        (_ACCUMULATES.format(scale=""), "TS231", True),
        (_ACCUMULATES.format(scale=" / accumulation_steps"), "TS231", False),
        (_INDEX.format(divide="/"), "TS119", True),
        (_INDEX.format(divide="//"), "TS119", False),
    ],
)
def test_mechanisms_of_real_fixes(tmp_path: Path, source: str, rule: str, fires: bool) -> None:
    assert (rule in found(tmp_path, source)) == fires
