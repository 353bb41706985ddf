"""Whole scripts, in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from torchstone.core.errors import InputError
from torchstone.core.report import Report
from torchstone.dryrun.options import DryRunOptions
from torchstone.dryrun.run import dry_run_command

Run = Callable[..., Report]

TRAIN = """\
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(100, 16), torch.randint(0, 10, (100,)))
model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear({hidden}, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cuda")
for x, y in DataLoader(data, batch_size=32, shuffle=True, num_workers=2, pin_memory=True):
    x, y = x.{view}.cuda(non_blocking=True), y.to("cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        out = model(x)
        assert out.dtype == torch.float16
        loss = F.cross_entropy(out, y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if torch.isnan(loss):
        print("never" + 1)
    print(f"{{loss:.3f}} {{loss.item():.2f}}", loss.device, x.is_cuda)
torch.save(model.state_dict(), "model.pt")
model.load_state_dict(torch.load("model.pt", map_location="cuda"))
"""


def run_process(folder: Path, text: str, **options: object) -> Report:
    """In a process of its own, as a user runs it."""
    (folder / "train.py").write_text(text, "utf-8")
    return dry_run_command(DryRunOptions(target="train.py", **options))  # type: ignore[arg-type]


def test_a_right_script_runs_on_the_pretend_device_and_both_sides_of_a_branch_are_run(
    folder: Path, run: Run
) -> None:
    report = run(TRAIN.format(hidden=32, view="clone()"))
    (finding,) = report.findings  # on the other side of `if torch.isnan(loss)`
    assert (finding.line, finding.rule) == (18, "DR102")
    measures = {item.name: item.value for item in report.measures}
    assert measures["optimizer_steps"] == 2
    assert measures["peak_memory_bytes"] > 0
    assert measures["assumptions"] >= 2
    assert sorted(os.listdir(folder)) == ["train.py"]


def test_a_wrong_layer_is_found_with_the_fix_that_worked(run: Run) -> None:
    report = run(TRAIN.format(hidden=31, view="clone()"), max_paths=1)
    (finding,) = report.findings
    assert (finding.rule, finding.line, finding.location.module) == ("DR101", 10, "3")
    assert "in_features = 31; it is 32" in finding.why.say()
    assert "set in_features=32 (tried: the program then runs on to its end)" in finding.remedy.say()
    assert "in_features=32（已尝试" in finding.remedy.say("zh")
    assert "<html" in report.to("html")


def test_the_remainder_batch_is_tried(run: Run) -> None:
    report = run(TRAIN.format(hidden=32, view="view(32, 16)"), max_paths=1)
    (finding,) = report.findings
    assert finding.rule == "DR106"
    assert "drop_last=True" in finding.remedy.say()


HOSTILE = """\
import ctypes, os, subprocess, sys, shutil
open("kept.txt").read()
os.makedirs("out/deep", exist_ok=True)
with open("out/deep/a.txt", "w") as file:
    file.write("x")
os.rename("out/deep/a.txt", "out/deep/b.txt")
assert os.listdir("out/deep") == ["b.txt"]
shutil.rmtree("out")
assert not os.path.exists("out")
with open("kept.txt", "a") as file:
    file.write("more")
assert open("kept.txt").read() == "mine" + "more"
os.remove("kept.txt")
assert not os.path.exists("kept.txt")
subprocess.Popen(["sh", "-c", "touch made_by_child; sleep 600"], start_new_session=True)
ctypes.CDLL(None).open(b"native.txt", os.O_CREAT | os.O_WRONLY, 0o644)
import urllib.request
urllib.request.urlopen("http://192.0.2.1/")
"""


def test_nothing_of_the_users_is_changed_and_no_process_is_left(folder: Path) -> None:
    (folder / "kept.txt").write_text("mine", "utf-8")
    report = run_process(folder, HOSTILE)
    assert not report.findings
    assert report.failed
    assert "needs the network" in report.gaps[0].reason.say()
    assert report.gaps[0].location.line == 18
    assert sorted(os.listdir(folder)) == ["kept.txt", "train.py"]
    assert (folder / "kept.txt").read_text("utf-8") == "mine"
    assert not [
        entry for entry in Path("/proc").glob("[0-9]*") if b"made_by_child" in _command_line(entry)
    ]


def _command_line(entry: Path) -> bytes:
    try:
        return (entry / "cmdline").read_bytes()
    except OSError:
        return b""


def test_a_script_that_never_ends_is_ended(run: Run) -> None:
    report = run("while True:\n    pass\n", max_seconds=1.0)
    (progress,) = report.measures
    assert "stopped after 1 s" in progress.how.en  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "import not_installed_anywhere as n\nprint(1 + n.x)\n",
            "No module named 'not_installed_anywhere'",
        ),
        (
            "import argparse\nargparse.ArgumentParser().parse_args()\n",
            "unrecognized arguments: --no",
        ),
        ("x = = 1\n", "SyntaxError"),
    ],
)
def test_a_script_that_cannot_start_is_the_users_to_repair(run: Run, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(text, "--no")


QUESTIONS = """\
import torch
from torch import nn
layer = nn.Linear(4, 4).cuda()
x, y = torch.randn(6, 4).cuda(), torch.randn(6)
keep = torch.tensor([True, False, True, True, False, False])
h = layer(x)
assert h.device.type == "cuda" and str(h.device) == "cuda:0", h.device
assert h[keep].shape == (3, 4) and h[keep, 1].shape == (3,), h[keep].shape
assert h[:, torch.tensor([True, False, True, False])].shape == (6, 2)
(h[keep][:, 0].cpu() - y[keep]).sum()
with torch.autocast(h.device.type, enabled=False):
    outer = h[0][:, None] * layer.bias
"""


def test_devices_masks_and_outer_products_are_as_on_a_real_device(run: Run) -> None:
    report = run(QUESTIONS)
    assert report.findings == ()
    assert report.gaps == ()


WITHOUT_SHAPES = """\
import torch

@torch.library.custom_op("mine::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

torch.nn.Linear(4, 4).cuda()(torch.randn(2, 4).cuda())
twice(torch.randn(2, 4).cuda())
"""


def test_an_operator_that_fake_tensors_lack_is_a_gap(run: Run) -> None:
    report = run(WITHOUT_SHAPES)
    assert report.findings == ()
    assert [gap.location.line for gap in report.gaps] == [8]


RECURRENT = """\
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

for kind in (nn.GRU, nn.LSTM, nn.RNN):
    layer = kind(4, 5, bidirectional=True, batch_first=True).cuda()
    out, _ = layer(torch.randn(2, 3, 4).cuda())
    assert out.shape == (2, 3, 10) and out.is_cuda
    packed = pack_padded_sequence(torch.randn(2, 3, 4).cuda(), torch.tensor([3, 1]), batch_first=True)
    assert packed.data.shape == (4, 4)
    out, lengths = pad_packed_sequence(layer(packed)[0], batch_first=True)
    assert out.shape == (2, 3, 10) and lengths.tolist() == [3, 1]
    out.sum().backward()
{last}
"""


def test_recurrent_layers_run_and_refuse_wrong_states(run: Run) -> None:
    last = "layer(torch.randn(2, 3, 4).cuda(), torch.zeros(2, 9, 5))"
    wrong = run(RECURRENT.format(last=last), no_fixes=True)
    (finding,) = wrong.findings
    assert (finding.rule, finding.line) == ("DR101", 14)
    assert finding.message().startswith("nn.RNN refuses input (2, 3, 4), hx (2, 9, 5)")


def test_counts_add_up_to_what_was_counted(run: Run) -> None:
    text = (
        "import torch\nchosen = torch.randn(52, 6, device='cuda').topk(2).indices.flatten()\n"
        "counts = torch.bincount(chosen, minlength=6)\nload = torch.zeros(6, device='cuda')\nload += counts\n"
        "parts = torch.randn(104, 8, device='cuda').split(counts.tolist())\nassert len(parts) == 6\n"
    )
    assert not run(text).findings


def test_parameters_on_the_meta_device_get_memory(run: Run) -> None:
    report = run(
        "import torch\n"
        "with torch.device('meta'):\n    model = torch.nn.Linear(4, 2)\n"
        "model.to_empty(device='cuda')\nmodel.reset_parameters()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "model(torch.ones(3, 4, device='cuda')).sum().backward()\noptimizer.step()\n"
    )
    assert not report.findings
    assert not report.gaps


def test_mixed_devices_are_named_in_the_headline(run: Run) -> None:
    report = run("import torch\nload = torch.ones(6)\nload.lerp_(torch.ones(6).cuda(), 0.1)\n")
    (finding,) = report.findings
    assert finding.rule == "DR104"
    assert "(6,) on cpu" in finding.message()
    assert "(6,) on cuda:0" in finding.message("zh")


KNOWN_MASK = """\
import torch
from torch import nn
x = nn.Linear(8, 4)(torch.randn(6, 8))
keep = torch.tensor([True, True, True, True, True, False])
assert x[keep].shape == (5, 4)
assert x.masked_select(keep[:, None]).shape == (20,)
assert x[x > 0].shape == (12,)
(x[keep] * torch.ones(len(torch.arange(6)[keep]), 1)).sum().backward()
"""


def test_a_known_mask_chooses_a_known_number_of_unknown_values(run: Run) -> None:
    report = run(KNOWN_MASK)
    assert report.findings == ()
    assert [item.name for item in report.measures if item.name == "assumptions" and item.value != 1] == []  # fmt: skip
