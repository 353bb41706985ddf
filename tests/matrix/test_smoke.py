"""Every tool once, as a user starts it; `make matrix` runs this with other versions of torch.

Each test is a row of the table in docs/versions.md: its docstring is what the row says.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.side

STEP = """\
import torch
from torch import nn
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    x, y = torch.randn(2, 3, 8, 8, device="cuda"), torch.randint(4, (2,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
RANKS = """\
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = DDP(nn.Linear(10, 4).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(2, 10, device="cuda")).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
"""
HANG = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(1))
dist.barrier()
"""
WATCHED = """\
import sys
import torch
from torch import nn
from torchstone import Watch
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with Watch(model, optimizer, folder=sys.argv[1]) as watch:
    for step in range(60):
        x = torch.randn(8, 4) * (float("nan") if step == 50 else 1.0)
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        watch.step(loss)
"""
PIPELINE = """\
import numpy as np
def prepare(image):
    scaled = image.astype(np.float32) / 255.0
    return np.clip(scaled - scaled.mean(), -1, 1)
for seed in range(5):
    prepare(np.random.default_rng(seed).integers(0, 255, (32, 32, 3)))
"""
TRAIN = """\
import torch
from torch import nn
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.randint(2, (4,)))
    loss.backward()
    optimizer.step()
"""


SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Environment:
    """An interpreter with the packages that are tried, and a folder to work in."""

    python: str
    folder: Path

    def write(self, text: str, name: str = "train.py") -> str:
        (self.folder / name).write_text(text, "utf-8")
        return name

    def start(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            timeout=600,
        )

    def run(self, *words: str, code: int = 0) -> str:
        """The output of one command, which must end with this exit code."""
        done = self.start("-m", "torchstone", *words, "--lang", "en")
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def place(python: str, tmp_path: Path) -> Environment:
    return Environment(python, tmp_path)


def test_check(place: Environment) -> None:
    """check"""
    assert "TS" in place.run("check", place.write(TRAIN), code=1)


def test_cost(place: Environment) -> None:
    """cost of a transformers model, with a backward pass"""
    said = place.run("cost", "hf:llama", "--train", "--format", "json")
    report = json.loads(said)
    params = next(item["value"] for item in report["measures"] if item["name"] == "params")
    assert params == 6_738_415_616
    assert not report["gaps"]


def test_dryrun(place: Environment) -> None:
    """dryrun of a training step on CUDA"""
    assert "optimizer steps  3" in place.run("dryrun", place.write(STEP))


def test_dryrun_finds_a_wrong_shape_and_device(place: Environment) -> None:
    """dryrun finds a wrong shape and a wrong device"""
    wrong = STEP.replace("8 * 36", "8 * 35")
    assert "in_features" in place.run("dryrun", place.write(wrong), code=1)
    wrong = STEP.replace('torch.randn(2, 3, 8, 8, device="cuda")', "torch.randn(2, 3, 8, 8)")
    said = place.run("dryrun", place.write(wrong), code=1)
    assert "on cpu" in said
    assert "on cuda:0" in said


def test_ranks(place: Environment) -> None:
    """dryrun of DistributedDataParallel, two ranks"""
    said = place.run("dryrun", place.write(RANKS), "--world-size", "2")
    assert "2 of 2 ranks run" in said


def test_hang(place: Environment) -> None:
    """dryrun finds a deadlock between ranks"""
    said = place.run("dryrun", place.write(HANG), "--world-size", "2", code=1)
    assert "do not call the same collective" in said


def test_watch(place: Environment) -> None:
    """watch: a recorded run with a NaN, and its report"""
    done = place.start(place.write(WATCHED), "run")
    assert done.returncode == 0, done.stderr
    assert "[ALERT]" in done.stdout + done.stderr
    assert "since step 51" in place.run("watch", "run", code=1)


def test_tensor(place: Environment) -> None:
    """tensor of a checkpoint"""
    made = "import torch; torch.save({'weight': torch.randn(64, 64)}, 'model.pt')"
    assert place.start("-c", made).returncode == 0
    assert "weight" in place.run("tensor", "model.pt", "-v")


def test_flow(place: Environment) -> None:
    """flow trace and plan"""
    place.run("flow", "trace", place.write(PIPELINE), "--save", "trace.json")
    place.run("flow", "plan", "trace.json", "--save", "plan.json")
    assert (place.folder / "plan.json").exists()


def test_kernel(place: Environment) -> None:
    """kernel verify of a torch candidate"""
    place.write(
        "import torch\nfrom torch import nn\n"
        "class Model(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
        "class ModelNew(nn.Module):\n    def forward(self, x):\n        return x.clamp(min=0)\n"
        "def get_inputs():\n    return [torch.randn(64, 64)]\n"
        "def get_init_inputs():\n    return []\n",
        "relu.py",
    )
    place.run("kernel", "verify", "relu.py", "--impl", "torch")


def test_review(place: Environment) -> None:
    """review of a small project, run in a sandbox"""
    (place.folder / "project").mkdir()
    place.write(TRAIN, "project/train.py")
    place.run("review", "project", "--output", "result", code=1)
    report = json.loads((place.folder / "result" / "report.json").read_text("utf-8"))
    assert report["findings"]
    early = [gap for gap in report["gaps"] if "ended early" in gap["reason"]["text"]["en"]]
    assert not early
