"""How a project is started, from its own texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.starting.commands import Command, find_commands


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "sub/inner").mkdir(parents=True)
    for name in ("train.py", "sub/run.py", "sub/inner/main.py"):
        (root / name).write_text("")
    (root / "start").write_text("#!/usr/bin/env python3\n")
    return root


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("README.md", "```\npython train.py --lr 0.1 # comment\n```", Command("train.py", ("--lr", "0.1"))),
        ("README.md", "`$ CUDA_VISIBLE_DEVICES=0 python3 -u train.py`", Command("train.py")),
        ("README.md", "torchrun --nproc_per_node=4 train.py --a 1", Command("train.py", ("--a", "1"), 4)),
        ("README.md", "python -m torch.distributed.launch --nproc_per_node 2 train.py", Command("train.py", (), 2)),
        ("README.md", "cd sub && python run.py", Command("sub/run.py", (), 1, "sub")),
        ("README.md", "git clone x/project\ncd project\npython train.py", Command("train.py")),
        ("sub/README.md", "python run.py", Command("sub/run.py", (), 1, "sub")),
        ("README.md", "python -m sub.run --n 3", Command("sub/run.py", ("--n", "3"))),
        ("README.md", "python train.py --data <path> --n 3 {X} $Y --out=$Z", Command("train.py", ("--n", "3"))),
        ("run.sh", "DATA=small\nexport LR=0.1\npython train.py --data $DATA --lr ${LR} \\\n  --n 2 > log", Command("train.py", ("--data", "small", "--lr", "0.1", "--n", "2"))),
        ("Makefile", "train:\n\tpython train.py --n 2", Command("train.py", ("--n", "2"))),
        ("README.md", "./start --n 2", Command("start", ("--n", "2"))),
        ("README.md", "accelerate launch --num_processes 2 train.py", Command("train.py", (), 2)),
    ],
)  # fmt: skip
def test_commands(name: str, text: str, expected: Command, project: Path) -> None:
    (project / name).write_text(text)
    assert find_commands(project) == (expected,)


@pytest.mark.parametrize(
    "text",
    ["python train.py --help", "python missing.py", "python ../outside.py", "python 'train.py", "pip install x"],
)  # fmt: skip
def test_what_is_no_start(text: str, project: Path) -> None:
    (project.parent / "outside.py").write_text("")
    (project / "README.md").write_text(text)
    assert find_commands(project) == ()
