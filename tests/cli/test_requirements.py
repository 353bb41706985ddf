"""A package that is missing, too old or broken is one sentence, exit 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchstone.cli import requirements
from torchstone.cli.requirements import PackageError, explain_failed_import, needs_torch
from torchstone.core.packages import TorchVersion, extra_for

SOURCE = Path(requirements.__file__).parents[2]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command where a package in `folder` comes before the installed ones."""
    return subprocess.run(
        [sys.executable, "-m", "torchstone", *words],
        env={**os.environ, "PYTHONPATH": f"{folder}:{SOURCE}"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("lang", "kind", "words"),
    [
        ("en", "OSError", "cost needs torch, and importing it fails: libcudart.so.13"),
        ("zh", "ImportError", "cost 需要 torch，但导入 torch 失败：libcudart.so.13"),
    ],
)
def test_a_torch_that_cannot_be_loaded(tmp_path: Path, lang: str, kind: str, words: str) -> None:
    (tmp_path / "torch.py").write_text(f"raise {kind}('libcudart.so.13: cannot open')\n", "utf-8")
    done = run(tmp_path, "cost", "hf:llama", "--lang", lang)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_package_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "scipy.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'scipy'\", name='scipy')\n", "utf-8"
    )
    (tmp_path / "job.py").write_text("import numpy as np\nnp.ones(3) + 1\n", "utf-8")
    done = run(tmp_path, "flow", "plan", "job.py", "--lang", "en")
    assert done.returncode == 2
    assert "scipy" in done.stderr
    assert 'pip install "torchstone[flow]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_torch_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "installed_torch", lambda: TorchVersion("2.4.1", (2, 4)))
    with pytest.raises(PackageError) as raised:
        needs_torch("cost")
    assert raised.value.say("en") == (
        'cost needs torch 2.6 or newer; 2.4.1 is installed; pip install "torch>=2.6"'
    )
    assert "当前安装的是 2.4.1" in raised.value.say("zh")


def test_an_error_of_the_users_own_import_is_not_ours_to_explain() -> None:
    assert explain_failed_import("dryrun", ModuleNotFoundError("x", name="their_package")) is None
    assert explain_failed_import("dryrun", ImportError("cannot import name 'a'")) is None


def test_the_extra_of_the_command_is_named_first() -> None:
    assert extra_for("scipy", "flow") == "flow"
    assert extra_for("gguf", "tensors") == "gguf"
    assert extra_for("their_package", "torch") is None
