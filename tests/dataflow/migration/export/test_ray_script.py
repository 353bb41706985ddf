"""`torchstone flow export --ray` writes a script that builds the pipeline."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from torchstone.cli.main import run

PLAN = {"context_device_map": {"prepare/cv2.resize": "cuda:0"}, "program": 'it\'s "quoted" \\ {x}'}


def written(tmp_path: Path, *words: str) -> int:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN), "utf-8")
    return run(
        ["flow", "export", str(tmp_path / "plan.json"), "--save", str(tmp_path / "out.py"), *words]
    )


def test_the_script_holds_the_plan_and_names_the_function(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert written(tmp_path, "--ray", "--call", "project.data:prepare") == 0
    text = (tmp_path / "out.py").read_text("utf-8")
    tree = ast.parse(text)
    assert "from project.data import prepare" in text
    plan = next(node for node in tree.body if isinstance(node, ast.Assign)).value
    assert json.loads(ast.literal_eval(plan.args[0]))["program"] == PLAN["program"]
    assert "1 operators on a device" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ("--call", "project:prepare"),
        ("--ray",),
        ("--ray", "--call", "project"),
        ("--ray", "--call", "project:f; import os"),
        ("--ray", "--call", "a b:c"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_nothing_written(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert written(tmp_path, *words) == 2
    assert not (tmp_path / "out.py").exists()
