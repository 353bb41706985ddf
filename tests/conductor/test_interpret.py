"""One list across tools: merged by place, patterns, evidence, priorities with their numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchstone.conductor.choices import Lead
from torchstone.conductor.drivers.planner import Planner
from torchstone.conductor.jobs.job import GOALS, Scope
from torchstone.conductor.phases.execute import Execution, ToolResult
from torchstone.conductor.phases.interpret import interpret
from torchstone.conductor.phases.problems import Interpretation, Marks
from torchstone.conductor.project.reach import map_reach
from torchstone.conductor.project.survey import survey
from torchstone.core.evidence import Number
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.fix import Edit, Fix, Safety
from torchstone.core.report import Report, RuleInfo
from torchstone.core.text import Message, Text


def finding(rule: str, path: str, line: int, *, tool: str = "check", severity: Severity = Severity.HIGH,
            confidence: Confidence = Confidence.LIKELY) -> Finding:  # fmt: skip
    said = Message(rule, Text(f"{rule} said", f"{rule} 说"))
    return Finding(rule, rule, severity, confidence, said, said, said, Location(path, line),
                   (Number("n", 1.0, "", "given"),), fingerprint(rule, path, str(line)), tool=tool)  # fmt: skip


def read(project: Path, *findings: Finding, scope: Scope | None = None, groups: dict[str, str] | None = None,
         **more: object) -> Interpretation:  # fmt: skip
    rules = {item.rule: RuleInfo(item.rule, item.rule, (groups or {}).get(item.rule, "correctness"),
                                 item.severity, Text("s", "s")) for item in findings}  # fmt: skip
    by_tool: dict[str, list[Finding]] = {}
    for item in findings:
        by_tool.setdefault(item.tool, []).append(item)
    results = tuple(
        ToolResult(tool, tool, "1", "done", Report(tool, tuple(items), rules=rules))
        for tool, items in by_tool.items()
    )
    return interpret(Execution(results), survey(project), scope or Scope(GOALS),
                     map_reach(project, ("train.py",)), Lead(Planner(), lambda _: None), **more)  # type: ignore[arg-type]  # fmt: skip


def test_two_tools_on_one_line_are_one_problem_and_the_run_leads(project: Path) -> None:
    found = read(
        project, finding("TS1", "train.py", 18), finding("DR1", "train.py", 18, tool="dryrun")
    )
    (problem,) = found.problems
    assert problem.finding.rule == "DR1"
    assert problem.evidence == "shown"
    assert [item.rule for item in problem.also] == ["TS1"]


def test_the_same_rule_in_nine_places_is_one_problem(project: Path) -> None:
    found = read(project, *(finding("TS1", "train.py", line) for line in range(1, 10)))
    assert len(found.problems) == 1
    assert len(found.problems[0].places) == 8


def test_places_that_no_patch_serves_are_problems_of_their_own(project: Path) -> None:
    fix = Fix((Edit("train.py", 3, 0, 3, 1, "x"),), Safety.UNSAFE)
    fixed = replace(finding("TS1", "train.py", 3), fix=fix)
    found = read(project, fixed, *(finding("TS1", "train.py", line) for line in (5, 9)))
    assert sorted(len(item.places) for item in found.problems) == [0, 1]
    hangs = read(project, *(finding("TS401", "train.py", line) for line in (5, 9)))
    assert [len(item.places) for item in hangs.problems] == [0, 0], "each waits for another rank"


def test_high_needs_a_derivation(project: Path) -> None:
    found = read(project, finding("TS1", "train.py", 18, confidence=Confidence.POSSIBLE),
                 finding("M1", "train.py", 3, tool="model"))  # fmt: skip
    assert {item.severity for item in found.problems} == {Severity.MEDIUM}


def test_other_tools_are_counted_and_stand_beside_a_problem(project: Path) -> None:
    found = read(project, finding("TS1", "train.py", 18), finding("mypy/x", "train.py", 18, tool="mypy"),
                 finding("mypy/y", "train.py", 2, tool="mypy"))  # fmt: skip
    assert found.counted == {"mypy": 2}
    assert [item.rule for item in found.problems[0].also] == ["mypy/x"]


def test_silent_wrong_results_outrank_crashes_and_slowness(project: Path) -> None:
    groups = {"W": "wrong result", "C": "crash", "S": "slow"}
    found = read(project, finding("S", "train.py", 18), finding("C", "train.py", 17),
                 finding("W", "train.py", 16), groups=groups)  # fmt: skip
    assert [item.finding.rule for item in found.problems] == ["W", "C", "S"]


def test_a_line_in_the_step_loop_outranks_one_outside(project: Path) -> None:
    found = read(project, finding("A", "train.py", 13), finding("B", "train.py", 18))
    assert [item.finding.rule for item in found.problems] == ["B", "A"]
    assert found.problems[0].reach.every_step
    assert not found.problems[1].reach.every_step


def test_what_a_step_calls_is_in_every_step(project: Path) -> None:
    (problem,) = read(project, finding("A", "model.py", 15)).problems
    assert problem.reach.scope == "Net.forward"
    assert problem.reach.from_entry


def test_the_priority_is_the_product_of_its_factors(project: Path) -> None:
    (problem,) = read(project, finding("A", "train.py", 18)).problems
    p = problem.priority
    assert p.value == pytest.approx(p.severity * p.reach * p.confidence * p.exposure / (1 + p.cost))


def test_marks_set_findings_aside(project: Path) -> None:
    item = finding("A", "train.py", 18)
    found = read(project, item, marks=Marks({item.fingerprint: "false-positive"}, {}))
    assert not found.problems
    assert "false-positive" in found.set_aside[0].why.en


def test_a_rule_that_is_often_rejected_drops_out(project: Path) -> None:
    found = read(project, finding("A", "train.py", 18), marks=Marks({}, {"A": 0.2}))
    assert not found.problems
    assert "20%" in found.set_aside[0].why.en


def test_a_component_limits_the_list(project: Path) -> None:
    found = read(project, finding("A", "train.py", 18), finding("B", "model.py", 15),
                 scope=Scope(GOALS, component="model.py"))  # fmt: skip
    assert [item.finding.rule for item in found.problems] == ["B"]
    assert len(found.set_aside) == 1


def test_old_problems_are_a_number(project: Path) -> None:
    found = read(
        project,
        finding("A", "train.py", 18),
        finding("B", "model.py", 15),
        changed={"model.py": {15}},
    )
    assert [item.finding.rule for item in found.problems] == ["B"]
    assert found.older == 1


def test_a_run_ties_the_static_findings_of_its_function_together(project: Path) -> None:
    groups = {"A": "hang", "B": "hang", "C": "hang"}
    found = read(project, finding("A", "train.py", 18, tool="dryrun"), finding("B", "train.py", 17),
                 finding("C", "model.py", 15), groups=groups)  # fmt: skip
    (cause,) = found.causes
    assert len(cause.problems) == 2
