"""Linting never loads torch or numpy, nor does what starts a dry run; and this test can fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "numpy")
COMMANDS = {
    "help": ["--help"],
    "check-help": ["check", "--help"],
    "check": ["check", "--no-cache", "SAMPLE"],
    "check-diff": ["check", "--no-cache", "--diff", "SAMPLE"],
    "explain": ["explain", "TS101"],
    "rules": ["rules"],
    "config": ["config"],
    "dryrun": ["dryrun", "SAMPLE"],
    "doctor": ["doctor"],
    **{
        f"format-{name}": ["check", "--no-cache", "--format", name, "SAMPLE"]
        for name in ("text", "concise", "json", "sarif", "markdown", "html", "github", "agent")
    },
}
PROBE = """
import sys, contextlib, io
{extra}
from torchstone.__main__ import main
sys.argv = ["torchstone", *{words!r}]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
print(*[name for name in {heavy!r} if name in sys.modules])
"""


def loaded(words: list[str], extra: str = "") -> list[str]:
    """Which heavy packages a command loads, seen from inside a process of its own."""
    script = PROBE.format(words=words, heavy=HEAVY, extra=extra)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("light") / "train.py"
    path.write_text(
        "import torch\n\n\ndef f(x):\n    s = torch.amp.GradScaler()\n    return x.half()\n"
    )
    return str(path)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_is_light(name: str, sample: str) -> None:
    words = [sample if word == "SAMPLE" else word for word in COMMANDS[name]]
    assert loaded(words) == []


def test_this_test_can_fail() -> None:
    assert loaded(["--help"], extra="import numpy") == ["numpy"]


def test_the_package_itself_is_light() -> None:
    script = f"import sys, torchstone; print(*[n for n in {HEAVY!r} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_the_floors_hold() -> None:
    root = Path(__file__).parent.parent.parent
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([str(program), "--no-cache"], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stdout
