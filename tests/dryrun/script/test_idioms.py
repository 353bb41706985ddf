"""What public training programs do, each of which stopped a dry run or was told as an error once."""

from __future__ import annotations

import pytest

from tests.dryrun.conftest import Run
from torchstone.core.report import Report

NET = """\
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
def net():
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
x = torch.randn(6, 8)
"""
TYPES = """
T = torch.cuda.FloatTensor
assert x.type(T).is_cuda and x.type("torch.cuda.HalfTensor").dtype == torch.float16
assert T(2, 3).fill_(1).shape == (2, 3) and T(np.ones((2, 5))).is_cuda
assert torch.cuda.LongTensor([1, 2]).dtype == torch.int64
assert isinstance(x.cuda(), T) and not isinstance(x, T) and x.cuda().type() == "torch.cuda.FloatTensor"
torch.set_default_tensor_type(T)
assert torch.zeros(3).is_cuda and net()(torch.randn(6, 8)).is_cuda and torch.tensor(1.0).is_cuda
torch.set_default_tensor_type(torch.FloatTensor)
assert not torch.zeros(3).is_cuda
nn.DataParallel(net()).cuda()(x).sum().backward()
"""
RECOMPUTED = """
model, data = net().cuda(), x.cuda().requires_grad_()
for reentrant in (False, True):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = checkpoint(model, data, use_reentrant=reentrant)
        assert out.dtype == torch.bfloat16 and torch.is_autocast_enabled()
        assert torch.get_autocast_dtype("cuda") == torch.bfloat16
        with torch.autocast("cuda", enabled=False):
            assert F.linear(data, model[0].weight).dtype == torch.float32
    assert not torch.is_autocast_enabled()
    out.sum().backward()
checkpoint(model, data, use_reentrant=False).sum().backward()
"""
VALUES = """
model = net()
scores = model(x)
torch.distributions.Normal(scores, torch.ones(4)).log_prob(scores).sum().backward()
assert torch.isfinite(scores).all()
assert not torch.isnan(scores).any(), "not a number"
assert scores.mean() > 0
assert torch.tensor([scores.mean(), scores.max()]).shape == (2,)
targets = torch.randint(1, 4, (6, 2))
F.ctc_loss(torch.randn(9, 6, 4).cuda().log_softmax(2), targets, torch.full((6,), 9), torch.full((6,), 2))
lazy = nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d()).cuda()
lazy(x.cuda()).sum().backward()
assert lazy[0].weight.grad.shape == (8, 8) and lazy[0].weight.is_cuda and lazy[1].running_mean.is_cuda
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), 1).cuda().eval()
with torch.no_grad():
    encoder(x.cuda()[None], src_key_padding_mask=torch.zeros(1, 6, dtype=torch.bool).cuda())
torch.jit.script(model).save("scripted.pt")
torch.jit.trace(model.eval(), x)(x)
torch.cuda.nvtx.range_push("step")
from torch.nn.attention.flex_attention import flex_attention
q = torch.randn(1, 2, 128, 16, device="cuda")
assert flex_attention(q, q, q).shape == q.shape
table = nn.Embedding(10, 4, sparse=True).cuda()
table(torch.tensor([1, 2]).cuda()).sum().backward()
torch.optim.SparseAdam(table.parameters()).step()
"""


def said(report: Report) -> list[str]:
    return [item.message() for item in report.findings] + [gap.reason.say() for gap in report.gaps]


@pytest.mark.parametrize("text", [TYPES, RECOMPUTED, VALUES])
def test_runs(text: str, run: Run) -> None:
    assert said(run(NET + text, max_paths=1)) == []


HOOKS = """
model, data = net().cuda(), x.cuda().requires_grad_()
def fails(*_): raise ValueError("from a hook")
"""
LINE = NET.count("\n") + 3


@pytest.mark.parametrize(
    "hook",
    [
        "model[0].weight.register_hook(fails)",
        "model[0].weight.register_post_accumulate_grad_hook(fails)",
        "model[0].register_full_backward_hook(fails)",
    ],
)
def test_what_a_backward_hook_raises_is_told_at_its_line(hook: str, run: Run) -> None:
    (finding,) = run(
        NET + HOOKS + hook + "\nmodel(data).sum().backward()\n", no_fixes=True
    ).findings
    assert (finding.rule, finding.line) == ("DR102", LINE)


def test_a_block_that_fails_when_it_is_computed_again_is_told_at_its_line(run: Run) -> None:
    text = "\ncalls = []\ndef block(data):\n    calls.append(0)\n    assert len(calls) < 2\n    return model(data)\n"
    text += "checkpoint(block, data, use_reentrant=False).sum().backward()\n"
    (finding,) = run(NET + HOOKS + text, no_fixes=True).findings
    assert (finding.rule, finding.line) == ("DR102", LINE + 5)


def test_optimizers_that_step_in_the_backward_pass_end_at_the_budget(run: Run) -> None:
    text = """
def follow(parameter, optimizer):
    def after(_):
        optimizer.step()
        optimizer.zero_grad()
    parameter.register_post_accumulate_grad_hook(after)
for parameter in model.parameters():
    follow(parameter, torch.optim.SGD([parameter], lr=0.1))
for _ in range(9):
    model(data).sum().backward()
"""
    report = run(NET + HOOKS + text)
    assert said(report) == []
    assert next(item.value for item in report.measures if item.name == "optimizer_steps") == 4


def test_a_library_that_hides_the_network_error_is_understood(run: Run) -> None:
    text = """
import urllib.request
errors = []
try:
    urllib.request.urlopen("http://example.com/data.gz")
except OSError as error:
    errors.append(error)
raise RuntimeError(f"Error downloading data.gz: {errors[0]}")
"""
    report = run(text)
    (gap,) = report.gaps
    assert not report.findings
    assert gap.failed
    assert "needs the network" in gap.reason.say()
    assert "下载" in gap.say_close("zh")
    assert not gap.is_command()
    assert "example.com:80" in report.to("json")


def test_a_file_missing_from_the_cache_of_the_hub_is_no_error_of_the_program(run: Run) -> None:
    text = "class LocalEntryNotFoundError(OSError): pass\n"
    text += "try:\n    raise LocalEntryNotFoundError('x')\nexcept OSError as error:\n"
    text += "    raise OSError('We could not connect to the hub') from error\n"
    report = run(text)
    assert not report.findings
    assert "needs the network" in report.gaps[0].reason.say()


def test_files_and_processes_of_the_program_are_said(run: Run) -> None:
    text = "import os, subprocess\nopen('log.txt', 'w').write('x')\nsubprocess.run(['true'])\n"
    text += "if os.fork() == 0:\n    raise SystemExit(3)\nos.wait()\n"
    report = run(text)
    measures = {item.name: item for item in report.measures}
    assert said(report) == []
    assert measures["written_files"].value == 1
    assert measures["started_processes"].value == 2
    assert "log.txt" in report.to("json")
    assert "--allow-write" in report.to("text")


def test_attributes_of_a_dataset_without_its_files_are_no_error(run: Run) -> None:
    text = """
import torch
from torch.utils.data import DataLoader, Dataset
class Pictures(Dataset):
    def __init__(self):
        self.names = []
        raise RuntimeError("no pictures")
    def __len__(self):
        return len(self.names)
dataset = Pictures()
assert len(list(DataLoader(dataset, batch_size=8, shuffle=True))) == 1
print(dataset.classes)
"""
    report = run(text, data="3x4x4,:int64<10")
    (gap,) = report.gaps
    assert not report.findings
    assert "no attribute 'classes'" in gap.reason.say()
    assert gap.location.line == 12
    (assumed,) = (item for item in report.measures if item.name == "assumptions")
    assert "略过错误继续" in str(assumed.evidence)
    assert "--data 给出的样本" in str(assumed.evidence)
