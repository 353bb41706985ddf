"""A review from end to end: what it writes, what it leaves alone, how it ends on bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchstone.cli.main import run as torchstone
from torchstone.conductor.changes.patches import changes_of, edits_of
from torchstone.conductor.choices import TextEdit
from torchstone.conductor.options import ReviewOptions
from torchstone.conductor.phases.execute import Conditions, Execution, ToolResult, execute
from torchstone.conductor.phases.verdicts import Verification
from torchstone.conductor.proving import prove
from torchstone.conductor.records.folder import RunFolder
from torchstone.conductor.records.state import apply_changes
from torchstone.conductor.review import run_review
from torchstone.conductor.run import Review
from torchstone.core.pictures import Tasks
from torchstone.core.report import Report
from torchstone.core.text import words
from torchstone.sandbox.run import is_confined

pytestmark = pytest.mark.skipif(not is_confined(), reason="this system offers no walls")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def quick(project: Path, output: str = "out", **more: object) -> Report:
    options = ReviewOptions(path=str(project), depth="quick", tools=("lint",), **more)  # type: ignore[arg-type]
    return run_review(options, output, "en")[0]


def standard(project: Path, output: str = "out", **more: object) -> Report:
    options = ReviewOptions(path=str(project), tools=("lint", "dryrun"), **more)  # type: ignore[arg-type]
    return run_review(options, output, "en")[0]


def test_a_standard_review_with_a_test_that_fails_already(
    project: Path, digest: Callable[[Path], str]
) -> None:
    tests = project / "tests" / "test_net.py"
    tests.write_text(tests.read_text() + "\n\ndef test_fails():\n    assert False\n")
    before = digest(project)
    report = standard(project)
    assert digest(project) == before
    names = {
        path.relative_to("out").as_posix() for path in Path("out").rglob("*") if path.is_file()
    }
    assert {
        "plan.md", "plan.json", "execution/lint.json", "execution/lint.log", "execution/log.md", "problems.md",
        "problems.json", "solutions.md", "guide.md", "verification.md", "report.html", "report.json", "report.md",
        "findings.sarif", "run.json", "execution/tests.json",
    } <= names  # fmt: skip
    assert {"TS201", "TS206", "TS314"} <= {item.rule for item in report.findings}
    _tests_are_the_baseline(report)
    assert "**Tried**: patch applies, unproven" in Path("out/guide.md").read_text()
    _patches_apply_and_the_second_look_is_clean(project)


def _tests_are_the_baseline(report: Report) -> None:
    assert report.answer is not None
    assert any("failed before any change" in item.en for item in report.answer.warnings)
    fails = next(item for item in report.findings if item.rule == "test-fails")
    assert fails.location.path == "tests/test_net.py"
    assert "test_fails" in fails.what.say("en")
    verification = RunFolder(Path("out")).load("verification", Verification)
    assert verification is not None
    assert len(verification.tests_before.passed) == 2
    assert len(verification.tests_before.failed) == 1
    assert {item.outcome for item in verification.verdicts if item.diff} == {"fixed"}
    assert not any(item.tests_lost for item in verification.verdicts)


def _patches_apply_and_the_second_look_is_clean(project: Path) -> None:
    patches = sorted(Path("out/patches").glob("[0-9]*.patch"))
    assert patches
    for patch in (*patches, Path("out/patches/all.patch")):
        check = ["git", "apply", "--check", str(patch.resolve())]
        assert subprocess.run(check, cwd=project, check=False).returncode == 0, patch.read_text()
    subprocess.run(
        ["git", "apply", str(Path("out/patches/all.patch").resolve())], cwd=project, check=True
    )
    after = quick(project, "again")
    assert not {"TS201", "TS206", "TS314"} & {item.rule for item in after.findings}


def test_review_verify_counts_what_a_person_fixed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick(project)
    model = project / "model.py"
    model.write_text(model.read_text().replace(", 0.1)", ", 0.1, self.training)"))
    assert torchstone(["review", "verify", "out", "-q"]) == 1
    assert "1 fixed" in capsys.readouterr().out


def test_a_second_run_is_answered_from_the_cache(project: Path) -> None:
    quick(project)
    quick(project, "again")
    again = RunFolder(Path("again")).load("execution/lint", ToolResult)
    assert again is not None
    assert again.state == "cached"
    (project / "model.py").write_text((project / "model.py").read_text() + "\n# changed\n")
    quick(project, "third")
    third = RunFolder(Path("third")).load("execution/lint", ToolResult)
    assert third is not None
    assert third.state == "done"


def test_a_review_goes_on_where_it_was_stopped(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Review, "interpret", stop)
        report = quick(project)
    assert report.answer is not None
    assert "--resume out" in report.answer.warnings[0].en
    assert report.failed  # exit 3: nothing found yet is not a clean project
    assert report.answer.next == ("torchstone review --resume out",)  # guide.md is not there yet
    tests = next(tile for tile in report.answer.tiles if tile.label.en == "tests")
    assert not tests.note  # "none", and not "none passed"
    assert not Path("out/problems.json").exists()
    stamp = Path("out/execution/lint.json").stat().st_mtime_ns
    report, _ = run_review(ReviewOptions(resume="out"), "", "en")
    assert Path("out/execution/lint.json").stat().st_mtime_ns == stamp
    assert {"TS201", "TS206"} <= {item.rule for item in report.findings}


def test_marks_feed_the_next_review(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick(project)
    problems = json.loads(Path("out/problems.json").read_text())["problems"]
    chosen = next(item for item in problems if item["finding"]["rule"] == "TS206")
    assert torchstone(["review", "mark", chosen["id"], "false-positive", "--run", "out"]) == 0
    assert "TS206" in capsys.readouterr().out
    after = quick(project, "again")
    assert "TS206" not in {item.rule for item in after.findings}
    assert "TS206" in Path("again/problems.md").read_text()  # set aside, and said so


def test_since_a_commit_old_problems_are_counted(project: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], cwd=project, check=True)
    model = project / "model.py"
    model.write_text(model.read_text().replace("0.1)", "0.2)"))
    report = quick(project, since="HEAD")
    assert {item.rule for item in report.findings} == {"TS206"}
    assert "older problems: " in Path("out/problems.md").read_text()
    assert report.answer is not None
    assert "older not listed" in words(report.answer.tiles[0].note, "en")


def test_chinese_guide_has_the_headings_of_the_workflow(project: Path) -> None:
    options = ReviewOptions(path=str(project), depth="quick", tools=("lint", "jaxtyping"))
    report, _ = run_review(options, "out", "zh")
    text = Path("out/guide.md").read_text()
    for heading in ("## 实施指南：", "### 问题概述", "### 解决方案", "### 代码修改", "**文件**: ", "**位置**: ",
                    "**修改前**:", "**修改后**:", "### 修改说明", "### 实施步骤", "### 注意事项", "### 验证方法"):  # fmt: skip
        assert heading in text
    assert report.answer is not None
    about = {item.label.en: words(item.value, "zh") for item in report.answer.about}
    assert (about["goals"], about["led by"]) == ("正确性、性能、可维护性", "内置规划器")
    shown = Path("out/report.md").read_text()
    assert "| 修复成本 | 一行 |" in shown
    assert "为张量添加注解" in shown
    assert "annotate tensors" not in shown


# -- bad input ------------------------------------------------------------------------------------


def test_a_folder_without_python_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert torchstone(["review", "empty", "-o", "out"]) == 2
    assert "no Python file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["missing"], ["project/model.py"], ["project", "--goal", "beauty"], ["project", "--scenario", "x"],
     ["project", "--tools", "x"], ["project", "--model", "x"], ["project", "--seconds", "0"],
     ["project", "--since", "nope"], ["--resume", "nowhere"]],
)  # fmt: skip
def test_wrong_words_are_exit_2(
    project: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert torchstone(["review", *words, "-o", "out"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_output_folder_with_something_in_it_is_left_alone(project: Path) -> None:
    Path("out").mkdir()
    Path("out/mine.txt").write_text("kept")
    assert torchstone(["review", str(project), "-o", "out"]) == 2
    assert os.listdir("out") == ["mine.txt"]


def test_a_tool_that_hangs_or_crashes_is_a_gap(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchstone.conductor.phases.execute.GRACE_SECONDS", 1.0)
    (project / "train.py").write_text(
        "import os, time\nif __name__ == '__main__':\n    os.kill(os.getppid(), 9)\n    time.sleep(600)\n"
    )
    made = Review(
        project,
        ReviewOptions(path=str(project), tools=("dryrun",), seconds=1.0),
        RunFolder(Path("out")),
    )
    Path("out").mkdir()
    from dataclasses import replace

    from torchstone.conductor.project.copying import copied

    plan = made.plan()
    plan = replace(plan, jobs=tuple(replace(job, seconds=20.0) for job in plan.jobs))
    with copied(project) as copy:
        done: Execution = execute(
            plan, copy, Conditions(use_cache=False), made.progress, lambda _: None
        )
    assert all(item.report.gaps for item in done.results)


def test_a_patch_that_a_run_proves_is_applied(project: Path) -> None:
    """The fault stops the program; the fix that the dry run tried is written, proven, applied."""
    model = project / "model.py"
    wrong = model.read_text().replace("nn.Linear(width, 4)", "nn.Linear(width + 1, 4)")
    model.write_text(wrong.replace("0.1)", "0.1, self.training)"))
    (project / "tests" / "test_net.py").unlink()
    report, _ = run_review(
        ReviewOptions(path=str(project), tools=("dryrun",), apply=True), "out", "en"
    )
    verification = RunFolder(Path("out")).load("verification", Verification)
    assert verification is not None
    assert [item.state for item in verification.verdicts] == ["proven"]
    assert "failed before and passes now" in verification.verdicts[0].check.en
    assert "nn.Linear(16, 4)" in model.read_text()
    assert Path("out/patches/proven.patch").is_file()
    assert report.findings
    assert report.answer is not None
    assert report.answer.warnings[0].en.startswith("The proven patches are in the tree: model.py.")
    assert f"torchstone undo {project}" in report.answer.next
    assert not any(step.startswith("git apply") for step in report.answer.next)
    first = next(item for item in report.answer.pictures if isinstance(item, Tasks))
    assert [task.command for task in first.tasks] == [""]  # it is in already
    name = verification.verdicts[0].problem
    assert f"torchstone review --prove out {name}" in Path("out/guide.md").read_text()
    assert prove("out", name).answer.headline.en.startswith(f"{name} is gone")  # type: ignore[union-attr]
    model.write_text(wrong.replace("0.1)", "0.1, self.training)"))
    again = prove("out", name)
    assert again.answer is not None
    assert "proven patch: dryrun" in again.answer.headline.en
    assert not again.findings
    model.write_text(wrong)
    assert "is still there" in prove("out", name).answer.headline.en  # type: ignore[union-attr]


def test_applied_changes_are_taken_back(project: Path, digest: Callable[[Path], str]) -> None:
    before = digest(project)
    edits = edits_of(project, [TextEdit("model.py", ", 0.1)", ", 0.1, self.training)")])
    apply_changes(project, changes_of(project, edits), "run")
    assert "self.training" in (project / "model.py").read_text()
    assert torchstone(["undo", str(project)]) == 0
    assert digest(project) == before
    assert torchstone(["undo", str(project)]) == 2


def test_undo_leaves_later_work_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edits = edits_of(project, [TextEdit("model.py", ", 0.1)", ", 0.1, self.training)")])
    apply_changes(project, changes_of(project, edits), "run")
    (project / "model.py").write_text("mine = 1\n")
    assert torchstone(["undo", str(project)]) == 2
    assert "changed after --apply" in capsys.readouterr().err
    assert (project / "model.py").read_text() == "mine = 1\n"


def test_the_command_prints_the_five_and_where_the_report_is(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torchstone", "review", str(project), "--tools", "lint", "--depth", "quick", "-o", "out"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Fix first" in done.stdout
    assert "git apply out/patches/" in done.stdout
    assert "out/report.html" in done.stderr
    assert len(done.stdout.splitlines()) <= 45
