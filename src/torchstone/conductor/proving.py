"""`review --prove RUN ID`: the experiment behind one problem again, without its patch and with it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from torchstone.conductor.changes.patches import PatchError
from torchstone.conductor.phases.before import Before
from torchstone.conductor.phases.design import Design
from torchstone.conductor.phases.execute import Conditions, Execution, ToolResult
from torchstone.conductor.phases.matching import Moves
from torchstone.conductor.phases.plan import Plan
from torchstone.conductor.phases.problems import OUTSIDE, Interpretation, Problem
from torchstone.conductor.phases.trees import Tree
from torchstone.conductor.phases.verdicts import StateWords, Verification
from torchstone.conductor.phases.verify import Search
from torchstone.conductor.project.copying import Copy, copied
from torchstone.conductor.project.testing import TestRun
from torchstone.conductor.records.folder import RunFolder, known_folder
from torchstone.conductor.run import RunInfo
from torchstone.core.answer import Answer
from torchstone.core.errors import InputError, UsageError
from torchstone.core.evidence import Diff, State
from torchstone.core.finding import Finding
from torchstone.core.options import unknown
from torchstone.core.report import Report
from torchstone.core.text import Text

_SECONDS = 900.0
"""As for a whole review."""
PATH_NOT_GIVEN = "."


@dataclass(frozen=True, slots=True)
class _Known:
    """What a run folder says of one problem."""

    info: RunInfo
    plan: Plan
    execution: Execution
    problem: Problem
    design: Design
    done: Verification


def prove(run: str, given: str) -> Report:
    """Runs nothing but what showed the problem; the project is copied, never changed."""
    known = _read(known_folder(run), given)
    with copied(Path(known.info.root)) as copy:
        before = Before(
            known.plan, known.execution, copy, TestRun("none"), Conditions(use_cache=False)
        )
        own = [item for item in known.problem.findings if item.tool not in OUTSIDE]
        jobs = before.jobs_that_found(own)
        now = Tree(before, {}, fresh=True)
        findings = [item for report in now.reports(jobs) for item in report.findings]
        there = [item for item in own if Moves().find(item, findings)]
        if there and copy.digest == known.info.digest:
            return _with_patch(known, before, there)
        return _as_it_is(known, copy, there)


def _as_it_is(known: _Known, copy: Copy, there: list[Finding]) -> Report:
    name = known.problem.id
    changed = copy.digest != known.info.digest
    if there:
        said = Text(
            f"{name} is still there in the project as it is now", f"当前项目中 {name} 仍然存在"
        )
        return _report(known, Answer(said, "bad"), tuple(there))
    if changed:
        said = Text(
            f"{name} is gone: the runs that showed it no longer do",
            f"{name} 已消失：曾展示它的运行不再出现该问题",
        )
        return _report(known, Answer(said, "good"))
    said = Text(
        f"{name} was not shown again, although nothing was changed: its run depends on chance",
        f"项目未改动，但 {name} 没有再次出现：其运行结果带有随机性",
    )
    return _report(known, Answer(said, "warning"))


def _with_patch(known: _Known, before: Before, there: list[Finding]) -> Report:
    name = known.problem.id
    verdict = known.done.of(name)
    solution = known.design.chosen(name)
    if verdict is None or solution is None or not solution.edits:
        said = Text(
            f"{name} is shown again; there is no patch for it", f"{name} 再次出现；没有补丁"
        )
        return _report(known, Answer(said, "bad"), tuple(there))
    ways = {way.id: known.done.edits_of(way) for way in known.design.solutions}
    try:
        base = Tree(before, {item: ways[item] for item in verdict.on_top_of}, fresh=True)
    except (PatchError, KeyError) as error:
        raise InputError(
            known.info.root, f"patches that no longer fit ({error})",
            Text("the project as it was reviewed", "评审时的项目"),
            Text("start a new review", "请重新开始评审"),
        ) from None  # fmt: skip
    search = Search(before, time.monotonic() + _SECONDS, base)
    search.try_next(known.problem, solution)
    again = search.verdicts[solution.id]
    word = StateWords[again.state]
    why = again.check if again.check.en else again.why
    state: State = "good" if again.state == "proven" else "warning"
    said = Text(f"{name}: {word.en}: {why.en}", f"{name}：{word.zh}：{why.zh}")
    left = () if again.state == "proven" else (known.problem.finding,)
    return _report(known, Answer(said, state, pictures=(Diff(again.diff),)), left)


def _report(known: _Known, answer: Answer, findings: tuple[Finding, ...] = ()) -> Report:
    return Report("review", findings, subject=Path(known.info.root).name, answer=answer)


def _read(folder: RunFolder, given: str) -> _Known:
    info, plan = folder.load("run", RunInfo), folder.load("plan", Plan)
    found = folder.load("problems", Interpretation)
    if info is None or plan is None or found is None:
        raise InputError(
            str(folder.path), "a review that did not come to its problems",
            Text("a review with problems.json", "含有 problems.json 的评审"),
            Text(f"go on with it: torchstone review --resume {folder.path}",
                 f"请继续该评审：torchstone review --resume {folder.path}"),
        )  # fmt: skip
    names = [item.id for item in found.problems]
    if given == PATH_NOT_GIVEN:
        raise UsageError(
            "review --prove", "no problem", Text("the id of a problem", "问题编号"),
            Text(f"for example: torchstone review --prove {folder.path} {(names or ['ID'])[0]}",
                 f"例如：torchstone review --prove {folder.path} {(names or ['ID'])[0]}"),
        )  # fmt: skip
    if given not in names:
        raise unknown("review --prove", given, names)
    problem = found.problems[names.index(given)]
    results = (folder.load(f"execution/{job.id}", ToolResult) for job in plan.jobs)
    execution = Execution(tuple(item for item in results if item is not None))
    done = folder.load("verification", Verification) or Verification(())
    design = folder.load("solutions", Design) or Design((), ())
    return _Known(info, plan, execution, problem, design, done)
