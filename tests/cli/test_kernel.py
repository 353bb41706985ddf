"""`torchstone kernel verify`: verdicts, formats, exit codes, mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchstone.cli.main import run

ROOT = Path(__file__).parent.parent.parent
RIGHT = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.clamp(x, min=0)
"""


@pytest.fixture
def candidate(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(RIGHT)
    return path


def test_accepted(candidate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["kernel", "verify", "relu", str(candidate), "--impl", "torch", "--seeds", "2"]
    assert run([*words, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["tool"] == "kernel"
    assert data["findings"] == []
    assert next(item for item in data["measures"] if item["name"] == "accepted")["value"] == 1
    assert data["environment"]["torch"]


def test_rejected_with_a_page(
    candidate: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    candidate.write_text(RIGHT.replace("torch.clamp(x, min=0)", "x.clone()"))
    page = tmp_path / "verdict.html"
    words = ["kernel", "verify", "relu", str(candidate), "--impl", "torch", "--lang", "zh"]
    assert run([*words, "-o", str(page), "--seeds", "2"]) == 1
    text = page.read_text("utf-8")
    assert "roundings" in text
    assert "答案错误的位置" in text
    assert "kernel-oracle" in text


def test_the_policy_needs_no_process(candidate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    candidate.write_text("import os\n" + RIGHT)
    assert run(["kernel", "verify", "relu", str(candidate), "--impl", "torch"]) == 1
    assert "imports os" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no command given"),
        (["verfy"], "verify"),
        (["verify"], "0 paths"),
        (["verify", "CANDIDATE"], "a candidate without a problem"),
        (["verify", "rleu", "CANDIDATE", "--impl", "torch"], "relu"),
        (["verify", "none.py", "CANDIDATE", "--impl", "torch"], "none.py"),
        (["verify", "relu", "none.py", "--impl", "torch"], "none.py"),
        (["verify", "relu", "CANDIDATE", "--memory", "lots"], "--memory"),
        (["verify", "relu", "CANDIDATE", "--impl", "torch", "--seeds", "1"], "2 or more"),
        (["verify", "CANDIDATE", "CANDIDATE", "--impl", "torch"], "no Model"),
        *(
            (
                ["verify", "relu", "CANDIDATE", "--impl", "torch", f"--timeout={value}"],
                f"--timeout: got {value}, expected seconds above 0",
            )
            for value in ("-1", "nan", "inf", "0")
        ),
        *(
            (
                ["generate", "relu", "--impl", "torch", "--model", "m", f"{flag}={value}"],
                f"{flag}: got {value}",
            )
            for flag, value in (
                ("--max-steps", "0"),
                ("--max-seconds", "-3"),
                ("--max-tokens", "0"),
                ("--answer-tokens", "-1"),
            )
        ),
    ],
)
def test_mistakes(
    words: list[str], said: str, candidate: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(candidate.parent)
    given = [str(candidate) if word == "CANDIDATE" else word for word in words]
    assert run(["kernel", *given]) == 2
    assert said in capsys.readouterr().err
    assert not Path("torchstone-runs").exists()


def test_a_language_that_cannot_run_here_is_answered_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    candidate = tmp_path / "add.py"
    candidate.write_text("import torch\nKERNEL = '__global__ void add() {}'\n")
    assert run(["kernel", "verify", "relu", str(candidate)]) == 3
    assert run(["kernel", "verify", "relu", str(candidate), "--impl", "tilelang"]) == 3
    text = capsys.readouterr().out
    assert "Not verified: CUDA kernels need nvcc" in text
    assert "Not verified: TileLang kernels need" in text


def test_the_shipped_problems_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kernel", "problems"]) == 0
    assert "relu: Negative values become zero." in capsys.readouterr().out
