"""How a project is started, from its own texts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torchstone.starting.commands import Command, find_commands
from torchstone.starting.console_scripts import ConsoleScript, find_console_scripts


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
        ("run.sh", "for M in big small; do\n  for n in 96 192\n  do\n  python train.py --model $M --n $n'_'a >logs/$M.log", Command("train.py", ("--model", "big", "--n", "96_a"))),
        ("run.sh", "python train.py --a 1 \\ \n  --b 2", Command("train.py", ("--a", "1", "--b", "2"))),
        ("README.md", "```python main.py --n 2```", Command("sub/inner/main.py", ("--n", "2"), 1, "sub/inner")),
        ("README.md", "python inner/main.py", Command("sub/inner/main.py", (), 1, "sub")),
        ("README.md", "python train.py -c [a yaml file] --n 2 --run <name of it>", Command("train.py", ("--n", "2"))),
        ("Makefile", "train:\n\tpython train.py --n 2", Command("train.py", ("--n", "2"))),
        ("README.md", "python train.py -- n 2 --  lr=3", Command("train.py", ("--n", "2", "--lr=3"))),
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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\nname = "x"\n[project.scripts]\nfit = "sub.run:go"'),
        ("pyproject.toml", '[tool.poetry.scripts]\nfit = "sub.run:go"'),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n    fit = sub.run:go"),
        ("setup.py", "setup(entry_points={'console_scripts': ['fit = sub.run:go']})"),
        ("setup.py", "setup(entry_points='[console_scripts]\\nfit = sub.run:go')"),
    ],
)
def test_an_installed_command_is_a_start(name: str, text: str, project: Path) -> None:
    (project / name).write_text(text)
    (project / "README.md").write_text("fit --lr 0.1")
    assert find_console_scripts(project) == (ConsoleScript("fit", "sub/run.py", "go"),)
    assert find_commands(project) == (Command("sub/run.py", ("--lr", "0.1")),)


def test_its_function_is_called_where_the_file_starts_nothing(project: Path) -> None:
    (project / "setup.cfg").write_text(
        "[options.entry_points]\nconsole_scripts =\n    fit = sub.run:go"
    )
    path = project / "sub/run.py"
    start = f"from torchstone.starting.documents import start_program; start_program({str(path)!r})"
    for text, expected in (
        ("def go():\n    print('called', __name__)\n", "called __main__\n"),
        (
            "def go():\n    print('called')\nif __name__ == '__main__':\n    print('itself')\n",
            "itself\n",
        ),
    ):
        path.write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", start], capture_output=True, text=True, check=True
        )
        assert done.stdout == expected
