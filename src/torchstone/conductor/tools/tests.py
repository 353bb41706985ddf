"""The project's own tests: those that fail are problems of their own."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from torchstone.conductor.jobs.job import Job, Layer, Offer, Request
from torchstone.conductor.jobs.versions import installed
from torchstone.conductor.project.testing import TestCase, TestRun, read_cases
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Table
from torchstone.core.report import Report, RuleInfo
from torchstone.core.text import Message, Text

NAME, SEED_NAME, DEPTH = "tests", "pytest", "standard"
LAYER: Layer = "integrated"
GOALS = ("correctness", "performance", "maintainability")
RULE = "test-fails"
_SECONDS = 180.0
_CASES = "tests"
_TITLE = Text("a test of the project fails", "项目的一个测试失败")
_WHY = Text("the code does not do what its authors wrote down", "代码没有做到其作者所写明的事")
_INFO = RuleInfo(RULE, RULE, "wrong result", Severity.MEDIUM, _TITLE, _WHY, Text("", ""))


def version() -> str:
    return installed("pytest")


def offer(request: Request) -> Offer:
    files = request.facts.tests.files
    return (job_of(files),) if files else ()


def job_of(files: tuple[str, ...]) -> Job:
    return Job(
        NAME, NAME, LAYER, files, _SECONDS,
        Text("the project's own tests", "项目自己的测试"),
        Text("tests that fail before any change; tests that a change breaks",
             "修改之前已失败的测试；被修改破坏的测试"),
        runs_project=True,
    )  # fmt: skip


def run(job: Job) -> Report:
    import pytest

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins of this machine stay out
    root = Path.cwd()
    sys.path.insert(0, str(root))  # as `python -m pytest` has it
    os.environ["PYTHONPATH"] = os.pathsep.join((str(root), os.environ.get("PYTHONPATH", "")))
    with tempfile.TemporaryDirectory(prefix="tests-") as folder:
        result = Path(folder, "tests.xml")
        words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
        words += [
            "--continue-on-collection-errors",
            "--no-header",
            "--tb=short",
            f"--rootdir={root}",
            f"--junitxml={result}",
        ]
        pytest.main([*words, *job.arguments])
        cases = read_cases(result, root)
    return report_of(cases)


def report_of(cases: tuple[TestCase, ...] | None) -> Report:
    """Findings for tests that fail, a gap for those of which nothing is known."""
    if cases is None:
        why = Text("pytest ended before its end", "pytest 未能运行至结束")
        return Report(NAME, gaps=(Gap(NAME, Message("tests.broken", why), "pytest", tool=NAME),))
    missing = [case for case in cases if case.state == "not run"]
    rows = tuple((case.name, case.state) for case in cases)
    title = Text("Tests of the project", "项目测试")
    head = (Text("test", "测试"), Text("outcome", "结果"))
    ran = Measure(
        _CASES, len(cases) - len(missing), "", Text("counted", "计数"), Text("tests run", "运行的测试"),
        evidence=(Table(title, head, rows),), tool=NAME,
    )  # fmt: skip
    findings = tuple(_finding(case) for case in cases if case.state == "failed")
    return Report(
        NAME, findings, (ran,), tuple(_gap(case) for case in missing), rules={RULE: _INFO}
    )


def _gap(case: TestCase) -> Gap:
    reason = Message(
        "tests.not-run",
        Text("this test could not be run: {said}", "该测试无法运行：{said}"),
        {"said": case.said or "-"},
    )
    return Gap(case.name, reason, "pytest", tool=NAME)


def _finding(case: TestCase) -> Finding:
    return Finding(
        rule=RULE,
        name=RULE,
        severity=Severity.MEDIUM,
        confidence=Confidence.CERTAIN,
        what=Message(RULE, Text("the test {name} fails", "测试 {name} 失败"), {"name": case.name}),
        why=Message(f"{RULE}-why", Text("{said}", "{said}"), {"said": case.said or _WHY.en}),
        remedy=Message(f"{RULE}-remedy", Text("", "")),
        location=Location(case.path, case.line, 1, scope=case.name),
        evidence=(
            Table(_TITLE, (Text("what pytest says", "pytest 输出"),), ((case.said or "-",),)),
        ),
        fingerprint=fingerprint(RULE, case.name, ""),
        tool=NAME,
    )


def test_run_of(reports: Iterable[Report]) -> TestRun:
    """What the reports of this tool say, as names of tests."""
    for report in reports:
        if report.tool != NAME:
            continue
        tables = [item for measure in report.measures for item in measure.evidence]
        if report.failed or not tables or not isinstance(tables[0], Table):
            return TestRun("late" if report.failed else "broken")
        rows = [(str(name), state) for name, state in tables[0].rows]
        passed, failed, missing = (
            tuple(name for name, state in rows if state == wanted)
            for wanted in ("passed", "failed", "not run")
        )
        return TestRun(
            "ran" if passed or failed or not missing else "broken", passed, failed, missing
        )
    return TestRun("none")


test_run_of.__test__ = False  # type: ignore[attr-defined]
