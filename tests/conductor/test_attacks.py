"""Holes that an attack found, each closed as a mechanism."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from torchstone.cli.main import run as torchstone
from torchstone.conductor.changes.patches import PatchError, changes_of, edits_of, is_silencing
from torchstone.conductor.choices import TextEdit
from torchstone.conductor.options import ReviewOptions
from torchstone.conductor.phases.design import Design
from torchstone.conductor.phases.judging import less_ran
from torchstone.conductor.project.copying import copied
from torchstone.conductor.project.testing import read_cases
from torchstone.conductor.records.folder import RunFolder, known_folder, new_folder
from torchstone.conductor.review import run_review
from torchstone.conductor.run import RunInfo
from torchstone.conductor.steps import Steps
from torchstone.core.errors import InputError
from torchstone.core.measure import Measure
from torchstone.core.report import Report
from torchstone.sandbox.run import is_confined
from torchstone.sources.git import changed_lines, git_state

walls = pytest.mark.skipif(not is_confined(), reason="this system offers no walls")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def quick(project: Path, output: str = "out") -> Report:
    options = ReviewOptions(path=str(project), depth="quick", tools=("lint",))
    return run_review(options, output, "en")[0]


def test_a_filter_with_an_equals_sign_in_its_name_is_switched_off(
    project: Path, tmp_path: Path
) -> None:
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {tmp_path / 'ran'}\ncat\n")
    script.chmod(0o755)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["commit", "-qm", "first"],
        ["commit", "-q", "--allow-empty", "-m", "b"],
    ):
        subprocess.run([*git, *words], cwd=project, check=True)
    (project / ".gitattributes").write_text("*.py filter=b=c\n")
    subprocess.run(["git", "config", "filter.b=c.clean", str(script)], cwd=project, check=True)
    (project / "model.py").write_text("changed = 1\n")
    changed_lines("HEAD~1", project)
    git_state(project)
    assert not (tmp_path / "ran").exists()


def test_a_link_in_the_tree_is_not_written_through(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (project / ".torchstone").mkdir()
    (project / ".torchstone" / ".gitignore").symlink_to(victim)
    monkeypatch.chdir(project)
    new_folder("")
    assert victim.read_text() == "kept"


def test_a_folder_that_is_a_link_is_refused(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (project / ".torchstone").symlink_to(tmp_path / "elsewhere")
    monkeypatch.chdir(project)
    with pytest.raises(InputError):
        new_folder("")
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("name", ["../out.json", "/tmp/x.json", "a/../../x"])
def test_names_stay_in_the_run_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        RunFolder(tmp_path).write(name, "x")


@walls
def test_a_forged_folder_names_no_server_and_no_rights(project: Path) -> None:
    quick(project)
    folder = RunFolder(Path("out"))
    info = folder.load("run", RunInfo)
    assert info is not None
    evil = replace(info.options, model="http://127.0.0.1:9/v1#x", allow_unconfined=True, apply=True)
    folder.keep("run", replace(info, options=evil))
    before = (project / "model.py").read_text()
    run_review(ReviewOptions(resume="out"), "", "en")
    after = folder.load("run", RunInfo)
    assert after is not None
    assert (after.options.model, after.options.allow_unconfined, after.options.apply) == (
        "",
        False,
        False,
    )
    assert after.driver == "planner"
    assert (project / "model.py").read_text() == before


@walls
def test_apply_writes_what_was_verified_or_nothing(project: Path) -> None:
    """Solutions may be proposed anew after a verification; their ids are used again."""
    quick(project)
    steps = Steps(RunFolder(Path("out")))
    done = steps.verify()
    assert done.everything is not None
    proven = replace(done, together=done.everything, verdicts=tuple(
        replace(item, state="proven") if item.outcome == "fixed" else item for item in done.verdicts))  # fmt: skip
    steps.folder.keep("verification", proven)
    design = steps.folder.load("solutions", Design)
    assert design is not None
    swapped = tuple(
        replace(way, edits=tuple(replace(edit, text="evil()") for edit in way.edits))
        for way in design.solutions
    )
    steps.folder.keep("solutions", replace(design, solutions=swapped))
    before = (project / "train.py").read_text()
    with pytest.raises(InputError):
        steps.apply(dry_run=False)
    assert (project / "train.py").read_text() == before


@pytest.mark.parametrize(
    "comment",
    ["#noqa", "# NOQA", "#type:ignore", "# torchstone:ignore[TS206]", "# Torchstone: Ignore"],
)
def test_suppressions_are_known_in_every_spelling(project: Path, comment: str) -> None:
    edits = [TextEdit("model.py", ", 0.1)", f", 0.1)  {comment}")]
    assert is_silencing(changes_of(project, edits_of(project, edits)))


@pytest.mark.parametrize(
    "name",
    [
        "pyproject.toml",
        "Makefile",
        "setup.py",
        "tests/test_net.py",
        "requirements.txt",
        "a\nb.py",
        "a\tb.py",
    ],
)
def test_files_that_control_the_project_are_refused(project: Path, name: str) -> None:
    path = project / name
    if not path.exists():
        path.write_text("old\n")
    old = "assert Net()" if name.startswith("tests") else "old"
    with pytest.raises(PatchError):
        edits_of(project, [TextEdit(name, old, "new")])


def test_a_pipe_as_an_answer_is_no_answer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tests.xml")
    assert read_cases(tmp_path / "tests.xml", tmp_path) is None


def test_a_change_after_which_less_runs_proves_nothing() -> None:
    def report(steps: float) -> Report:
        return Report("probes", measures=(Measure("steps", steps, "", "counted"),))

    assert less_ran([report(4)], [report(0)]) is not None
    assert less_ran([report(4)], [Report("probes")]) is not None
    assert less_ran([report(4)], [report(4)]) is None
    assert less_ran([report(24)], [report(22)]) is None  # the same script on a busier machine


def test_large_files_reach_every_copy(project: Path) -> None:
    with (project / "weights.bin").open("wb") as file:
        file.truncate(17 << 20)
    with copied(project) as first, copied(first.project, first.original) as second:
        assert (second.project / "weights.bin").stat().st_size == 17 << 20
        assert first.digest == second.digest


def test_folders_nested_too_deeply_are_said(tmp_path: Path) -> None:
    top = tmp_path / "deep"
    top.mkdir()
    handle = os.open(top, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    try:
        with pytest.raises(InputError), copied(top):
            pass
    finally:
        subprocess.run(["rm", "-rf", str(top)], check=False)


def test_a_run_folder_that_the_project_brings_is_not_the_newest(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = project / ".torchstone" / "review" / "99999999-000000"
    forged.mkdir(parents=True)
    (forged / "run.json").write_text(json.dumps({"root": "/"}))
    monkeypatch.chdir(project)
    with pytest.raises(InputError):
        known_folder("")
    assert torchstone(["review", "verify"]) == 2
