"""What was not run is never green: the headline, the state and the exit code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchstone.conductor.jobs.job import GOALS, Job, Scope
from torchstone.conductor.phases.design import Design
from torchstone.conductor.phases.execute import Execution, ToolResult
from torchstone.conductor.phases.guide import Guide
from torchstone.conductor.phases.plan import Plan
from torchstone.conductor.phases.problems import Interpretation
from torchstone.conductor.phases.verdicts import Verification
from torchstone.conductor.project.facts import EntryPoint, ProjectFacts
from torchstone.conductor.reporting.coverage import cover
from torchstone.conductor.reporting.outcome import Outcome
from torchstone.conductor.reporting.report import report_on_review
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.report import Report
from torchstone.core.text import Message, Text

NO = Text("", "")


def made(
    steps: int | None, gap: str = "", depth: str = "standard", tools: tuple[str, ...] = ()
) -> Report:
    """A review without problems whose dry run of train.py made so many steps; None: none was started."""
    entries = () if steps is None else (EntryPoint("train.py", trains=True),)
    facts = ProjectFacts("demo", 1, 1, entry_points=entries)
    job = Job(
        "dryrun-train", "dryrun", "specialised", ("train.py",), 1.0, NO, NO, runs_project=True
    )
    plan = Plan(facts, replace(Scope(GOALS), depth=depth), (), (job,), ())
    gaps = (Gap("train.py", Message("g", Text(gap, gap)), "", tool="dryrun"),) if gap else ()
    measures = (Measure("optimizer_steps", steps or 0, "", NO, NO, tool="dryrun"),)
    results = () if steps is None else (
        ToolResult("dryrun-train", "dryrun", "1", "done", Report("dryrun", (), measures, gaps)),
    )  # fmt: skip
    outcome = Outcome(
        plan, Execution(results), Interpretation(()), Design((), ()), Guide((), ()), Verification(()),
        coverage=cover(plan, results, tools),
    )  # fmt: skip
    return report_on_review(outcome)


def test_a_tick_means_that_a_program_made_steps() -> None:
    report = made(3)
    assert report.answer is not None
    assert (report.answer.state, report.failed) == ("good", False)
    assert "Nothing found that we would stop a merge for" in report.answer.headline.en


@pytest.mark.parametrize(
    ("steps", "gap", "said"),
    [
        (None, "", "no program that trains was found"),
        (0, "No module named 'apex'", "train.py: No module named 'apex'"),
        (0, "", "train.py: it made no optimizer step"),
    ],
)
def test_a_project_that_made_no_step_is_not_judged(steps: int | None, gap: str, said: str) -> None:
    report = made(steps, gap)
    assert report.answer is not None
    assert report.answer.headline.en.startswith("Not judged")
    assert said in report.answer.headline.en
    assert (report.answer.state, report.failed) == ("warning", True)


def test_what_the_user_left_out_is_said_and_no_failure() -> None:
    for report in (made(None, depth="quick"), made(None, tools=("lint",))):
        assert report.answer is not None
        assert report.answer.headline.en == "Nothing found by reading; no program was run"
        assert (report.answer.state, report.failed) == ("warning", False)


def test_every_start_is_listed_with_how_far_it_came(tmp_path: Path) -> None:
    text = made(0, "No module named 'apex'").to("markdown")
    assert "train.py" in text
    assert "No module named 'apex'" in text


def test_models_on_made_inputs_do_not_make_a_project_judged() -> None:
    """They are run where no program comes to a step, and are listed; the programs are not judged all the same."""
    run = Report("models", (), (Measure("built:net.py:Net", 4, "", NO, Text("Net", "Net")),))
    results = (ToolResult("models", "models", "1", "done", run),)
    plan = Plan(ProjectFacts("demo", 1, 1), Scope(GOALS), (), (), ())
    covered = cover(plan, results, ())
    assert (covered.judged, [item.en for item in covered.built]) == (False, ["Net"])
