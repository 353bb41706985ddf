"""Facts that travel through functions of other files, each with a twin that is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions

_STEP = """\
    for epoch in range(9):
        {first}
        for x, y in loader:
            optimizer.zero_grad()
            loss = {forward}
            loss.backward()
            optimizer.step()
"""
_LOADER = """\
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

def make_loader(data):
    sampler = DistributedSampler(data)
    return DataLoader(data, batch_size=8, sampler=sampler)
"""
_TELLS = _LOADER + "\ndef begin(loader, epoch):\n    loader.sampler.set_epoch(epoch)\n"
_USES_LOADER = (
    "from helpers import {names}\n\ndef train(model, data, optimizer):\n    loader = make_loader(data)\n"
    + _STEP
)
_WRAP = """\
from torch.nn.parallel import DistributedDataParallel as DDP

def wrap(model, device):
    return DDP(model.to(device))
"""
_PLAIN = "def wrap(model, device):\n    return model.to(device)\n"
_USES_WRAP = (
    "import torch\nfrom helpers import wrap\n\ndef train(model, device, loader, optimizer):\n"
    "    model = wrap(model, device)\n" + _STEP.format(first="pass", forward="{forward}")
)
_UNWRAP = 'def unwrap(model):\n    return model.module if hasattr(model, "module") else model\n'
_PAST = "import torch\n\ndef loss_of(model, x):\n    return model.module(x).sum()\n"
_USES_DDP = (
    "from torch.nn.parallel import DistributedDataParallel as DDP\nfrom helpers import {names}\n\n"
    "def train(net, loader, optimizer):\n    model = DDP(net)\n"
    + _STEP.format(first="pass", forward="{forward}")
)
_SAVE = """\
import torch
import torch.distributed as dist

def save(model, path):
    if dist.get_rank() != 0:
        return
    torch.save(model.state_dict(), path)
"""
_USES_SAVE = """\
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from helpers import save

def train(net):
    model = {wrapped}
    save(model, "a.pt")
"""
_FACTORY = """\
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.1, self.training)

def build():
    net = Net()
    {switch}
    return net
"""
_EVALUATES = """\
import torch
from helpers import build

def evaluate(loader):
    model = build()
    with torch.no_grad():
        return [model(x) for x, y in loader]
"""

_CASES = [
    ("TS404", _LOADER, _USES_LOADER.format(names="make_loader", first="pass", forward="model(x)"), True),
    ("TS404", _TELLS, _USES_LOADER.format(names="make_loader, begin", first="begin(loader, epoch)", forward="model(x)"), False),
    ("TS414", _WRAP, _USES_WRAP.format(forward="model.module(x)"), True),
    ("TS414", _WRAP, _USES_WRAP.format(forward="model(x)"), False),
    ("TS414", _PLAIN, _USES_WRAP.format(forward="model.module(x)"), False),
    ("TS414", _UNWRAP, _USES_DDP.format(names="unwrap", forward="unwrap(model)(x)"), True),
    ("TS414", _UNWRAP, _USES_DDP.format(names="unwrap", forward="unwrap(net)(x)"), False),
    ("TS414", _PAST, _USES_DDP.format(names="loss_of", forward="loss_of(model, x)"), True),
    ("TS414", _PAST, _USES_DDP.format(names="loss_of", forward="model(loss_of)"), False),
    ("TS416", _SAVE, _USES_SAVE.format(wrapped="FSDP(net)"), True),
    ("TS416", _SAVE, _USES_SAVE.format(wrapped="net"), False),
    ("TS229", _FACTORY.format(switch="pass"), _EVALUATES, True),
    ("TS229", _FACTORY.format(switch="net.eval()"), _EVALUATES, False),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "helpers", "program", "fires"), _CASES)
def test_through_a_function_of_another_file(
    tmp_path: Path, rule: str, helpers: str, program: str, fires: bool
) -> None:
    (tmp_path / "helpers.py").write_text(helpers, "utf-8")
    (tmp_path / "program.py").write_text(program, "utf-8")
    report = check(CheckOptions(paths=(str(tmp_path),), select=(rule,), no_cache=True))
    assert not report.gaps
    assert bool(report.findings) == fires
