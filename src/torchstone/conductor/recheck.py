"""A review again: on a tree that a developer changed by hand; and words on its problems."""

from __future__ import annotations

from pathlib import Path

from torchstone.conductor.phases.execute import Conditions, ToolResult, execute
from torchstone.conductor.phases.plan import Plan
from torchstone.conductor.phases.problems import OUTSIDE, Interpretation, Problem
from torchstone.conductor.project.copying import copied
from torchstone.conductor.project.testing import TestRun
from torchstone.conductor.records.folder import known_folder
from torchstone.conductor.records.state import MARKS, Mark, add_mark
from torchstone.conductor.run import RunInfo, silent
from torchstone.conductor.tools import tests
from torchstone.conductor.words import counted
from torchstone.core.answer import Answer, Tile
from torchstone.core.errors import InputError
from torchstone.core.finding import Finding, Severity
from torchstone.core.options import unknown
from torchstone.core.pictures import Check, Strip
from torchstone.core.report import Report
from torchstone.core.text import Text


def _known(run: str) -> tuple[RunInfo, Plan, Interpretation, TestRun]:
    folder = known_folder(run)
    info, plan = folder.load("run", RunInfo), folder.load("plan", Plan)
    found = folder.load("problems", Interpretation)
    if info is None or plan is None or found is None:
        raise InputError(
            str(folder.path), "a review that did not come to its problems",
            Text("a review with problems.json", "含有 problems.json 的评审"),
            Text(f"go on with it: torchstone review --resume {folder.path}",
                 f"请继续该评审：torchstone review --resume {folder.path}"),
        )  # fmt: skip
    known = folder.load(f"execution/{tests.NAME}", ToolResult)
    return info, plan, found, tests.test_run_of((known.report,) if known else ())


def verify_run(run: str) -> Report:
    """The same runs on the tree as it is now: fixed, remaining, new."""
    info, plan, found, before = _known(run)
    root = Path(info.root)
    with copied(root) as copy:
        now = execute(plan, copy, Conditions(), silent, lambda _: None)
    present = {item.fingerprint: item for report in now.reports for item in report.findings}
    known = {item.fingerprint for problem in found.problems for item in problem.findings}
    known |= {item.finding.fingerprint for item in found.set_aside}
    left = [problem for problem in found.problems if _is_left(problem, present)]
    fresh = [
        item for key, item in present.items()
        if key not in known and item.tool not in OUTSIDE and item.severity is not Severity.LOW
        and not any(_moved(item, problem) for problem in left)
    ]  # fmt: skip
    fixed = len(found.problems) - len(left)
    lost = tests.test_run_of(now.reports).worse_than(before)
    return Report(
        "review",
        findings=(*(problem.finding for problem in left), *fresh),
        gaps=tuple(gap for report in now.reports for gap in report.gaps),
        subject=root.name,
        answer=_answer(fixed, left, fresh, lost),
        rules={key: info for report in now.reports for key, info in report.rules.items()},
    )


def _is_left(problem: Problem, present: dict[str, Finding]) -> bool:
    own = [item for item in problem.findings if item.tool not in OUTSIDE]
    return any(item.fingerprint in present for item in own) or any(
        _moved(item, problem) for item in present.values()
    )


def _moved(item: Finding, problem: Problem) -> bool:
    """The same rule at the same place in other words: the line was edited, the fault stayed."""
    return any(
        item.rule == old.rule and item.path == old.path and abs(item.line - old.line) <= 2
        for old in problem.findings
    )


def _answer(fixed: int, left: list[Problem], fresh: list[Finding], lost: tuple[str, ...]) -> Answer:
    bad = bool(fresh or lost)
    return Answer(
        headline=Text(
            f"{fixed} fixed, {len(left)} remaining, {len(fresh)} new, {counted(len(lost), 'test')} lost",
            f"已修复 {fixed}，仍存在 {len(left)}，新增 {len(fresh)}，失去的测试 {len(lost)}",
        ),
        state="bad" if bad else "warning" if left else "good",
        tiles=(
            Tile(Text("fixed", "已修复"), str(fixed), state="good" if fixed else "plain"),
            Tile(Text("remaining", "仍存在"), str(len(left)), state="warning" if left else "good"),
            Tile(Text("new", "新增"), str(len(fresh)), state="bad" if fresh else "good"),
        ),
        pictures=(Strip(Text("remaining", "仍存在"), tuple(
            Check(f"{item.id} {item.where}", "warning", item.finding.what.say("en")) for item in left
        )),) if left else (),
        lines=tuple(Text(f"test lost: {name}", f"失去的测试：{name}") for name in lost),
    )  # fmt: skip


def mark_problem(run: str, given: str, word: str) -> Text:
    """Remember what the user says of a problem."""
    if word not in MARKS:
        raise unknown("review mark", word, list(MARKS))
    info, _, found, _ = _known(run)
    problems = [item for item in found.problems if given in (item.id, item.finding.fingerprint)]
    if not problems:
        raise unknown("review mark", given, [item.id for item in found.problems])
    for item in problems[0].findings:
        if item.tool not in OUTSIDE:
            add_mark(Path(info.root), Mark(item.fingerprint, item.rule, word))
    rule = problems[0].finding.rule
    return Text(f"{given} ({rule}): {word}", f"{given}（{rule}）：{word}")
