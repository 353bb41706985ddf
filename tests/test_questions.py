"""Twelve questions of a new user: a script goes in, the first screen has the answer, in both languages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from torchstone.cli.main import run

NAN = """
import torch
from torch import nn
from torchstone import watch_training

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
data = torch.randn(4, 8, 8)
data[2, 5] = 0

def normalise(x):
    return x / x.norm(dim=1, keepdim=True)

@watch_training(folder="run")
def train_step(model, batch):
    optimizer.zero_grad()
    loss = model(normalise(batch)).square().mean()
    loss.backward()
    optimizer.step()
    return loss

for batch in data:
    train_step(model, batch)
"""
LOADER = """
import numpy as np

def tokenise(text):
    return [sum(ord(c) * 31 for c in word) % 100 for word in text.split() for _ in range(40)]

def load(i):
    image = np.full((8, 8), i % 200, np.uint8)
    return image + 1, tokenise("one two three four five six seven")

rows = [load(i) for i in range(300)]
"""
TRAIN = """
import time
import torch
from torch.utils.data import DataLoader

class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.ones(4)

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for batch in DataLoader(Images(), batch_size=2):
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
"""
DDP = """
import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = int(os.environ["RANK"])
if rank == 0:
    dist.barrier()
dist.destroy_process_group()
"""
MODEL = """
import torch
from torch.nn import functional as F

class Net(torch.nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.1)
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """Exit code and output of a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def asked(*words: str) -> tuple[int, str]:
        capfd.readouterr()
        code = run(list(words))
        return code, capfd.readouterr().out

    return asked


LANGS = pytest.mark.parametrize("lang", ["en", "zh"])


def first_screen(said: str, *wanted: str) -> None:
    """All within the lines that a terminal shows without scrolling."""
    shown = "\n".join(said.splitlines()[:24])
    for words in wanted:
        assert words in shown


def test_1_why_is_my_loss_nan(ask, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(NAN)
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, check=True)
    code, said = ask("watch", "run", "--lang", "en")
    assert code == 1
    first_screen(said, "first non-finite value: `div` at train.py:13", "row 5 of 8", "(8, 1): 0 to")
    first_screen(ask("watch", "run", "--lang", "zh")[1], "第一个非有限值：train.py:13", "第 5 行")


@LANGS
def test_2_does_a_qlora_of_8b_fit_on_24_gb(ask, lang: str) -> None:
    words = "cost hf:llama-3-8b --lora r=16 --quant nf4 --train --device 4090 --seq 4k --batch 1"
    code, said = ask(*words.split(), "--lang", lang)
    assert code == 1
    wanted = "it fits with --checkpoint" if lang == "en" else "加上 --checkpoint 即可放下"
    first_screen(said, wanted, "labels=(1, 4096)", "41.94 M")
    code, said = ask(*words.split(), "--checkpoint", "--lang", lang)
    assert code == 0
    first_screen(said, "Fits on" if lang == "en" else "可放入")


@LANGS
def test_3_what_is_slow_in_my_loader(ask, tmp_path: Path, lang: str) -> None:
    (tmp_path / "load.py").write_text(LOADER)
    code, said = ask("flow", "trace", "load.py", "--lang", lang)
    assert code == 0
    first_screen(said, "tokenise", "vectorise" if lang == "en" else "向量化")
    assert "tokenise" in said.splitlines()[0]


@LANGS
def test_3_what_is_slow_in_my_training_script(ask, tmp_path: Path, lang: str) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    code, said = ask("flow", "steps", "train.py", "--steps", "6", "--lang", lang)
    assert code == 0
    largest = "s: waiting for data" if lang == "en" else "s：等待数据"
    assert largest in said.splitlines()[0]
    assert "Images.__getitem__" in said.splitlines()[0]
    first_screen(said, "train.py:11", "num_workers=4", "host", "device")


@LANGS
def test_4_is_my_ddp_script_right(ask, tmp_path: Path, lang: str) -> None:
    (tmp_path / "ddp.py").write_text(DDP)
    code, said = ask("check", "ddp.py", "--lang", lang, "--no-cache")
    assert code == 1
    first_screen(said, "[MEDIUM] `dist.barrier()`", "rank == 0")
    code, said = ask("dryrun", "ddp.py", "--lang", lang)
    assert code == 1
    first_screen(said, "ddp.py:9", "torchrun")


def test_5_in_ci(ask, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    code, said = ask("check", ".", "--format", "github", "--no-cache")
    assert code == 1
    assert said.startswith("::error ")
    assert "model.py" in said


@LANGS
def test_6_ignore_this_finding(ask, tmp_path: Path, lang: str) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    _, said = ask("check", "model.py", "--lang", lang, "--no-cache")
    [comment] = [line.partition("#")[2] for line in said.splitlines() if "ignore[" in line]
    (tmp_path / "model.py").write_text(MODEL.replace("0.1)", f"0.1)  #{comment} on purpose"))
    assert ask("check", "model.py", "--no-cache")[0] == 0


@LANGS
def test_7_compare_two_runs(ask, tmp_path: Path, lang: str) -> None:
    from torchstone.watch import Watch

    for name, rate in (("a", 0.1), ("b", 0.001)):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), rate)
        with Watch(model, optimizer, folder=name) as watch:
            for _ in range(60):
                x = torch.randn(32, 4)
                loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                watch.step(loss)
    code, said = ask("watch", "diff", "a", "b", "--lang", lang)
    assert code == 0
    worse = "B is worse than A: loss" if lang == "en" else "B 比 A 更差：损失"
    assert worse in said.splitlines()[0]
    first_screen(said, "lr 0.1 → 0.001", "A | B")


@LANGS
def test_8_is_this_fp8_checkpoint_all_right(ask, tmp_path: Path, lang: str) -> None:
    weights = torch.randn(64, 64, generator=torch.Generator().manual_seed(0)) * 1e-4
    held = {"a.weight": weights.to(torch.float8_e4m3fn), "a.weight_scale": torch.ones(1)}
    torch.save(held, tmp_path / "model.pt")
    code, said = ask("tensor", "model.pt", "--lang", lang)
    assert code == 1
    damaged = "Damaged fp8 checkpoint" if lang == "en" else "fp8 检查点受损"
    assert damaged in said.splitlines()[0]


def test_9_which_kernels_can_be_checked(ask) -> None:
    code, said = ask("kernel", "problems", "--lang", "en")
    assert code == 0
    assert "problems come with the package" in said


@LANGS
def test_10_let_my_agent_use_it(ask, tmp_path: Path, lang: str) -> None:
    assert ask("mcp", "--setup", "claude", "--write", "--lang", lang)[0] == 0
    assert "torchstone" in json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]
    assert (tmp_path / ".claude/skills/torchstone/SKILL.md").exists()


@LANGS
def test_12_what_does_a_rule_mean(ask, lang: str) -> None:
    code, said = ask("explain", "TS301", "--lang", lang)
    assert code == 0
    first_screen(said, "TS301", "Why it is bad" if lang == "en" else "为什么")
