"""Changes: only source files of the project, exactly where they were meant, never to hide."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from torchstone.conductor.changes.patches import (
    PatchError,
    changes_of,
    diff_of,
    edits_of,
    is_silencing,
    together,
    write_changes,
)
from torchstone.conductor.choices import TextEdit
from torchstone.core.fix import Edit


def change(root: Path, path: str, old: str, new: str) -> str:
    return diff_of(changes_of(root, edits_of(root, [TextEdit(path, old, new)])))


@pytest.mark.parametrize(
    "path",
    [
        "../outside.py",
        "/etc/passwd",
        "a/../../outside.py",
        ".git/hooks/pre-commit",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        "poetry.lock",
        "sub/uv.lock",
        "conftest.py",
        "tests/conftest.py",
        "sitecustomize.py",
        "run.sh",
        "evil.pth",
        "missing.py",
        "",
        "a\\b.py",
        "nul\0.py",
        "link.py",
        "linked/inner.py",
    ],
)
def test_paths_that_are_refused(project: Path, tmp_path: Path, path: str) -> None:
    for name in (".git/hooks/pre-commit", ".github/workflows/ci.yml", ".gitlab-ci.yml", "poetry.lock",
                 "sub/uv.lock", "conftest.py", "tests/conftest.py", "sitecustomize.py", "run.sh",
                 "evil.pth"):  # fmt: skip
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("old\n")
    outside = tmp_path / "outside.py"
    outside.write_text("old\n")
    (project / "link.py").symlink_to(outside)
    (project / "linked").symlink_to(tmp_path)
    (tmp_path / "inner.py").write_text("old\n")
    with pytest.raises(PatchError):
        change(project, path, "old", "new")
    assert outside.read_text() == "old\n"


@pytest.mark.parametrize(
    ("old", "count"), [("torch", "many"), ("no such text", "none"), ("", "empty")]
)
def test_an_old_text_must_stand_exactly_once(project: Path, old: str, count: str) -> None:
    with pytest.raises(PatchError):
        change(project, "model.py", old, "x")


def test_an_edit_that_breaks_the_syntax_is_refused(project: Path) -> None:
    with pytest.raises(PatchError):
        change(project, "model.py", "def forward(", "def forward((")


def test_a_diff_is_taken_by_git(project: Path) -> None:
    diff = change(project, "model.py", ", 0.1)", ", 0.1, self.training)")
    done = subprocess.run(
        ["git", "apply", "-"], cwd=project, input=diff, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert ", 0.1, self.training)" in (project / "model.py").read_text()


def test_a_file_without_a_last_newline(project: Path) -> None:
    (project / "bare.py").write_text("a = 1\nb = 2")
    diff = change(project, "bare.py", "b = 2", "b = 3")
    done = subprocess.run(["git", "apply", "-"], cwd=project, input=diff, text=True, check=False)
    assert done.returncode == 0
    assert (project / "bare.py").read_text() == "a = 1\nb = 3"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("x = F.dropout(torch.relu(self.first(x)), 0.1)", "x = F.dropout(torch.relu(self.first(x)), 0.1)  # noqa", "noqa"),
        ("        x = F.dropout(torch.relu(self.first(x)), 0.1)\n", "", "deletes"),
        (", 0.1)", ", 0.1)  # torchstone: ignore[TS206]", "ignore"),
        (", 0.1)", ", 0.1, self.training)", ""),
    ],
)  # fmt: skip
def test_what_only_hides_is_told(project: Path, old: str, new: str, why: str) -> None:
    changes = changes_of(project, edits_of(project, [TextEdit("model.py", old, new)]))
    assert (why in is_silencing(changes)) if why else is_silencing(changes) == ""


def test_changes_that_meet_wait_for_the_next_round() -> None:
    one, two = Edit("a.py", 1, 0, 1, 5, "x"), Edit("a.py", 1, 3, 1, 8, "y")
    three = Edit("a.py", 2, 0, 2, 1, "z")
    assert together({"a": (one,), "b": (two,), "c": (three,)}) == (("a", "c"), ("b",))


def test_changes_are_written_into_a_copy(project: Path) -> None:
    changes = changes_of(
        project, edits_of(project, [TextEdit("model.py", "width: int = 16", "width: int = 8")])
    )
    write_changes(project, changes)
    assert "width: int = 8" in (project / "model.py").read_text()
