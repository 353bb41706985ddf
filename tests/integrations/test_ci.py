"""The pre-commit hook, the GitHub action and the tutorial for CI do what they promise."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from torchstone.cli.main import run

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorials" / "check-in-ci.md"
MAKE = [sys.executable, "scripts/side_environment.py", ".venv-pre-commit", "pre-commit==4.7.0"]

BAD = """\
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5)
"""
GOOD = BAD.replace("0.5)", "0.5, training=self.training)")
RULE = "TS206"  # ungated-dropout; it has a safe fix
# a finding without a fix, for the baseline to keep
KEPT = """\
from torch import nn


def measure(model, x, y):
    return nn.functional.cross_entropy(model(x).softmax(-1), y)
"""


def git(folder: Path, *words: str) -> None:
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *author, *words], cwd=folder, check=True, capture_output=True)


def copy_package(folder: Path) -> Path:
    """The files of the package that its installation reads, as they are now."""
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml", "action.yml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.side
def test_the_hook_stops_a_commit_until_the_code_is_fixed(tmp_path: Path) -> None:
    made = subprocess.run(MAKE, cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    python = made.stdout.strip().splitlines()[-1]

    package = copy_package(tmp_path / "torchstone")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"], ["tag", "v1"]):
        git(package, *words)
    project = tmp_path / "project"
    project.mkdir()
    repository = {"repo": str(package), "rev": "v1", "hooks": [{"id": "torchstone-check"}]}
    (project / ".pre-commit-config.yaml").write_text(json.dumps({"repos": [repository]}), "utf-8")
    (project / "model.py").write_text(BAD, "utf-8")
    (project / "notes.txt").write_text(BAD, "utf-8")
    git(project, "init", "-q")
    git(project, "add", "-A")

    def start() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-m", "pre_commit", "run"],
            cwd=project,
            env={**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "cache"), "LANG": "C"},
            capture_output=True,
            text=True,
        )

    stopped = start()
    assert stopped.returncode == 1, stopped.stdout + stopped.stderr
    assert "exit code: 1" in stopped.stdout
    assert "model.py" in stopped.stdout
    assert "notes.txt" not in stopped.stdout
    (project / "model.py").write_text(GOOD, "utf-8")
    git(project, "add", "-A")
    passed = start()
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert re.search(r"torchstone check\.+Passed", passed.stdout)


def fill_in(text: str, inputs: dict[str, str], others: dict[str, str]) -> str:
    """The text with the expressions of a workflow replaced by their values."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        return inputs[name.removeprefix("inputs.")] if name.startswith("inputs.") else others[name]

    return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", value, text)


@pytest.mark.side
def test_the_action_fails_the_job_and_writes_its_files(tmp_path: Path) -> None:
    package = copy_package(tmp_path / "torchstone")
    action = yaml.safe_load((package / "action.yml").read_text("utf-8"))
    (step,) = [step for step in action["runs"]["steps"] if "run" in step]
    assert step["shell"] == "bash"
    others = {
        "steps.python.outputs.python-path": sys.executable,
        "github.action_path": str(package),
    }
    project = tmp_path / "project"
    project.mkdir()
    (project / "model.py").write_text(BAD, "utf-8")
    (project / "fine.py").write_text(GOOD, "utf-8")

    def start(**given: str) -> subprocess.CompletedProcess[str]:
        inputs = {name: about["default"] for name, about in action["inputs"].items()}
        inputs |= {name.replace("_", "-"): text for name, text in given.items()}
        values = {name: fill_in(text, inputs, others) for name, text in step["env"].items()}
        return subprocess.run(
            # as GitHub starts `shell: bash`
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=project,
            env={**os.environ, **values, "RUNNER_TEMP": str(tmp_path), "LANG": "C"},
            capture_output=True,
            text=True,
        )

    failed = start(sarif_file="found.sarif")
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert re.search(
        rf"^::error title={RULE} .*file=model\.py,line=7,", failed.stdout, re.MULTILINE
    )
    written = json.loads((project / "found.sarif").read_text("utf-8"))
    assert [found["ruleId"] for found in written["runs"][0]["results"]] == [RULE]
    assert start(paths="fine.py").returncode == 0
    assert start(fail_on="never", format="concise").returncode == 0
    assert start(paths="missing.py $(touch made)").returncode == 2
    assert not (project / "made").exists()


def read_commands() -> list[str]:
    """The commands of the tutorial in their order, those of the workflow too."""
    lines = re.sub(r"^ *- run: ", "    ", TUTORIAL.read_text("utf-8"), flags=re.MULTILINE)
    return re.findall(r"^ +(torchstone .+)$", lines, re.MULTILINE)


def test_the_commands_of_the_tutorial_work_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "model.py").write_text(BAD, "utf-8")
    (tmp_path / "src" / "train.py").write_text(KEPT, "utf-8")
    commands = read_commands()
    codes = [run(shlex.split(command)[1:]) for command in commands]
    said = capsys.readouterr().out
    look, diff, fix, freeze, again, in_ci = zip(commands, codes, strict=True)
    assert look == ("torchstone check src", 1)
    assert diff == ("torchstone check src --diff", 1)
    assert fix == ("torchstone check src --fix", 1)
    assert (tmp_path / "src" / "model.py").read_text("utf-8") == GOOD
    assert (freeze[1], again[1], in_ci[1]) == (0, 0, 0)
    assert ", 1 hidden by the baseline." in said
