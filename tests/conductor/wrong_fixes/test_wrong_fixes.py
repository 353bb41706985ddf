"""A fix counts as proven only if it is right; wrong ones of many kinds are tried."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conductor.wrong_fixes.cases import CASES, Case
from torchstone.conductor.changes.patches import edits_of
from torchstone.conductor.choices import TextEdit
from torchstone.conductor.experiments.checks.check import make_check
from torchstone.conductor.options import ReviewOptions
from torchstone.conductor.phases.before import Before
from torchstone.conductor.phases.design import Solution
from torchstone.conductor.phases.plan import Plan
from torchstone.conductor.phases.trees import Tree
from torchstone.conductor.phases.verify import Search
from torchstone.conductor.project.copying import copied
from torchstone.conductor.project.testing import TestRun
from torchstone.conductor.records.folder import RunFolder
from torchstone.conductor.run import Review
from torchstone.conductor.tools import checks
from torchstone.core.finding import Severity
from torchstone.core.text import Text


def test_there_are_enough_of_them() -> None:
    assert sum(len(case.wrong) for case in CASES) >= 40


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_only_the_right_fix_is_proven(case: Case, tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text(case.program)
    starter = "torchrun --nproc-per-node 2" if "init_process_group" in case.program else "python"
    (root / "README.md").write_text(f"```\n{starter} train.py\n```\n")
    folder = RunFolder(tmp_path / "out")
    folder.path.mkdir()
    review = Review(root, ReviewOptions(path=str(root), tools=("lint", case.tool)), folder)
    with copied(root) as copy:
        review.keep_start(copy)
        plan = _with_check(review.plan(), case, root)
        execution = review.execute(plan, copy)
        found = review.interpret(plan, execution)
        problem = next(item for item in found.problems if item.finding.rule.startswith(case.rule))
        before = Before(plan, execution, copy, TestRun("none"), review.conditions)
        states = {}
        for number, text in enumerate((case.right, *case.wrong)):
            edits = edits_of(root, [TextEdit("train.py", case.faulty, text)])
            way = Solution(str(number), problem.id, "model", Text("", ""), edits, by="agent")
            search = Search(before, time.monotonic() + 600, Tree(before, {}))
            search.try_next(problem, way)
            states[text] = search.verdicts[way.id].state
    assert states.pop(case.right) == "proven"
    assert [text for text, state in states.items() if state == "proven"] == []


def _with_check(plan: Plan, case: Case, root: Path) -> Plan:
    if not case.check:
        return plan
    made = make_check("train.py", 10, "the average", Severity.HIGH, case.check, "agent", root)
    return replace(plan, jobs=(*plan.jobs, checks.job_of(made)))
