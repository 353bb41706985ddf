"""The decisions of a review again, from its record: no model is asked, nothing is run anew."""

from __future__ import annotations

import json
from pathlib import Path

from torchstone.conductor.choices import Choice, Decision, Lead, Proposal, Suggestion
from torchstone.conductor.drivers.planner import Planner
from torchstone.conductor.phases.design import Design, design
from torchstone.conductor.phases.plan import Plan, make_plan
from torchstone.conductor.phases.problems import Interpretation
from torchstone.conductor.records.folder import RunFolder
from torchstone.conductor.run import RunInfo, scope_of
from torchstone.conductor.tools import checks, tool_named
from torchstone.conductor.words import counted
from torchstone.core.answer import Answer
from torchstone.core.codec import from_data
from torchstone.core.errors import InputError, TorchstoneError
from torchstone.core.pictures import Table
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.trace.run import load


class RecordedDriver:
    """Answers every choice as it was answered then."""

    name = "record"

    def __init__(self, decisions: tuple[Decision, ...]) -> None:
        self._known = {item.choice: item for item in decisions}
        self.missed: list[str] = []
        self._planner = Planner()

    def choose(self, choice: Choice) -> Decision:
        known = self._known.get(choice.id)
        if known is None:
            self.missed.append(choice.id)
            return self._planner.choose(choice)
        return known

    def propose(self, _problem: str, _data: str) -> Proposal | None:
        return None

    def suggest(self, _data: str, _failed: str) -> tuple[Suggestion, ...]:
        return ()


def recorded_decisions(folder: RunFolder) -> tuple[Decision, ...]:
    """The decisions of a run, in their order."""
    run = load(folder.path / "trace" / "review")
    found: list[Decision] = []
    for record in run.records:
        text = run.text(record, "result")
        if text is None:
            continue
        try:
            found.append(from_data(Decision, json.loads(text), "decision"))
        except (ValueError, TorchstoneError):
            continue
    return tuple(found)


def replay_run(folder: RunFolder) -> Report:
    """Plan and design from the record; every difference to what the folder holds is told."""
    info = folder.load("run", RunInfo)
    plan, found = folder.load("plan", Plan), folder.load("problems", Interpretation)
    before = folder.load("solutions", Design)
    if info is None or plan is None:
        raise InputError(
            str(folder.path), "no plan", Text("a run that was planned", "已有计划的运行"),
            Text("run `torchstone review` first", "请先运行 `torchstone review`"),
        )  # fmt: skip
    driver = RecordedDriver(recorded_decisions(folder))
    lead = Lead(driver, lambda _: None)
    wanted = tuple(map(tool_named, info.options.tools))
    again = make_plan(plan.facts, scope_of(info.options), wanted, lead)
    rows = _differences("plan", _planned(plan), _planned(again))
    if found is not None and before is not None:
        made = design(found, Path(info.root), lead, before.proposals)
        rows += _differences(
            "design",
            [step.solution for step in before.steps],
            [step.solution for step in made.steps],
        )
    rows += [("record", name, "no recorded decision") for name in driver.missed]
    headline = (
        Text("The replay makes the same decisions", "重放得到相同的决定") if not rows
        else Text(f"The replay differs in {counted(len(rows), 'place')}", f"重放有 {len(rows)} 处不同")
    )  # fmt: skip
    table = Table(
        Text("Differences", "差异"),
        (Text("phase", "阶段"), Text("what", "内容"), Text("how", "情况")),
        tuple(rows),
    )
    return Report("review", subject=folder.path.name, answer=Answer(
        headline, "bad" if rows else "good", pictures=(table,) if rows else ()))  # fmt: skip


def _planned(plan: Plan) -> list[str]:
    """The runs that somebody chose; checks run because they were handed in, at any time."""
    return [job.id for job in plan.jobs if job.tool != checks.NAME]


def _differences(phase: str, old: list[str], new: list[str]) -> list[tuple[str, str, str]]:
    rows = [(phase, item, "only in the record") for item in old if item not in new]
    return rows + [(phase, item, "only in the replay") for item in new if item not in old]
