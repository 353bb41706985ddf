"""A program of the project under every relation: one recorded run, then its calls again.

This runs inside the sandbox, in a copy of the project.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import tempfile
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import torch  # noqa: F401  loaded once, before the forks

from torchstone.conductor.experiments import BACKWARDS, FIRST_LOSS, HOLDS
from torchstone.conductor.experiments.recording.run import Run
from torchstone.conductor.experiments.recording.session import Start, record
from torchstone.conductor.experiments.relations import all_relations
from torchstone.conductor.experiments.subject import FirstRun, Subject
from torchstone.conductor.experiments.variations import all_variations
from torchstone.conductor.probes.processes import answers_of, used_by_children
from torchstone.conductor.probes.rules import Shown, finding_of
from torchstone.core.codec import from_data, to_data
from torchstone.core.finding import Finding
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.place import NOWHERE, Place
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.dryrun.reporting.supplied import rest_on, supply_measures
from torchstone.starting.loop import Attempt, run_with_repairs
from torchstone.starting.obstacles import Obstacle
from torchstone.starting.supplies import Supply

TOOL = "experiments"
_KEPT_LOSSES = 20
"""From each end of a run: enough to see whether they fall."""
_MOST_LOST = 3
"""Relations that may end the process: each costs another run of the program."""
_HOW = Text("counted while the script ran", "脚本运行时计数")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the child that ran everything says."""

    findings: tuple[Finding, ...] = ()
    gaps: tuple[Gap, ...] = ()
    steps: int = 0
    calls: int = 0
    held: tuple[str, ...] = ()
    """Rules of the relations that were decided and hold."""
    ended: str = ""
    last_lines: str = ""
    first: FirstRun = FirstRun()
    obstacle: Obstacle | None = None
    stack: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Notes:
    """Written before each relation: which one comes now, and what is known by then."""

    examining: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of the child; none where it did not come to its end."""

    outcome: Outcome | None
    late: bool = False


def run_experiments(start: Start) -> Report:
    """Every relation on one program."""
    command = " ".join(("python", start.script, *start.arguments))
    if b"distributed" in (start.root / start.script).read_bytes():
        importlib.import_module("torch._dynamo")  # collectives need it: loaded before the fork

    def attempt(supplies: tuple[Supply, ...]) -> Attempt[Answer]:
        before = used_by_children()
        answer = _outcome_of(replace(start, supplies=supplies), command)
        made = answer.outcome
        if made is None:
            return Attempt(answer, None)
        return Attempt(answer, made.obstacle, made.stack, used_by_children() - before)

    started = run_with_repairs(attempt, start.root, start.root / start.script)
    outcome, late = started.outcome.outcome or Outcome(), started.outcome.late
    gaps = list(outcome.gaps)
    if started.outcome.outcome is None:
        why = (
            Text("it took too long", "超时") if late else Text("its process ended", "进程异常结束")
        )
        gaps.append(Gap(start.script, Message("experiments.child", why), command, tool=TOOL))
    elif outcome.ended not in ("", "time"):
        printed = f" ({outcome.last_lines})" if outcome.ended.startswith("exit") else ""
        said = Message(
            "experiments.ended",
            Text("the script ended early: {why}", "脚本提前结束：{why}"),
            {"why": outcome.ended + printed},
        )
        gaps.append(Gap(start.script, said, command, tool=TOOL))
    outcome = _with_variations(replace(start, supplies=started.supplies), command, outcome)
    rules = {
        rule.id: rule.info()
        for module in (*all_relations(), *all_variations())
        for rule in module.RULES
    }
    measures = (
        Measure("steps", outcome.steps, "", _HOW, Text("optimizer steps", "优化步数"), tool=TOOL),
        Measure("calls", outcome.calls, "", _HOW, Text("calls recorded", "记录的调用"), tool=TOOL),
        Measure(
            BACKWARDS,
            outcome.first.backwards / max(outcome.steps, 1),
            "",
            _HOW,
            Text("backward passes in a step", "每步反向传播次数"),
            tool=TOOL,
        ),
        Measure(
            FIRST_LOSS,
            _first_loss(outcome.first),
            "",
            _HOW,
            Text("first loss", "首个损失"),
            tool=TOOL,
        ),
        *(
            Measure(
                f"{HOLDS}{name}", 1.0, "", _HOW, Text(f"{name} holds", f"{name} 成立"), tool=TOOL
            )
            for name in outcome.held
        ),
    )
    findings = rest_on(outcome.findings, started.supplies)
    measures = (*measures, *supply_measures(started.supplies))
    return Report(TOOL, findings, measures, tuple(gaps), rules=rules, subject=command)


def _outcome_of(start: Start, command: str) -> Answer:
    """What all relations say. One that ends the process, as native code can that is called with changed
    inputs, is left out of the next try; what the others have said by then is kept where time runs out."""
    lost: dict[str, Gap] = {}
    while True:
        with tempfile.TemporaryDirectory(prefix="relations-") as folder:
            notes = Path(folder, "notes.json")
            work = functools.partial(_written, start, command, notes, frozenset(lost))
            ((text, late),) = answers_of([work])
            noted = json.loads(notes.read_text("utf-8")) if notes.is_file() else None
        if text is not None:
            made = from_data(Outcome, json.loads(text), "outcome")
            return Answer(replace(made, gaps=(*made.gaps, *lost.values())))
        if noted is None:
            return Answer(None, late)
        notes_made = from_data(Notes, noted, "notes")
        lost[notes_made.examining] = _lost(notes_made.examining, late, start, command)
        if late or len(lost) > _MOST_LOST:
            made = notes_made.outcome
            return Answer(replace(made, gaps=(*made.gaps, *lost.values())))


def _lost(name: str, late: bool, start: Start, command: str) -> Gap:
    why = (
        Text(
            f"{name} took too long, and what comes after it was not examined",
            f"{name} 超时，其后的关系未检查",
        )
        if late
        else Text(f"{name} ended the process: it was left out", f"{name} 使进程异常结束：已略去")
    )
    return Gap(start.script, Message("experiments.lost", why), command, tool=TOOL)


def _with_variations(start: Start, command: str, outcome: Outcome) -> Outcome:
    """Short runs more, where the program has what they change."""
    shown: list[Shown] = []
    held, gaps = list(outcome.held), list(outcome.gaps)
    for module in all_variations() if outcome.steps else ():
        try:
            examined = module.examine(start, outcome.first)
        except Exception as error:  # our own fault: it is reported, and the others go on
            gaps.append(_own_fault(module, error, start, command))
            continue
        shown += examined.shown
        if examined.decided and not examined.shown:
            held += [rule.id for rule in module.RULES]
    found = tuple(_with_tool(finding_of(item, start.root, command)) for item in shown)
    findings = (*outcome.findings, *found)
    return replace(outcome, findings=findings, held=tuple(held), gaps=tuple(gaps))


def _own_fault(module: ModuleType, error: BaseException, start: Start, command: str) -> Gap:
    name = module.__name__.rpartition(".")[2]
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__}: {str(error)[:160]} ({Path(last.filename).name}:{last.lineno})"
    said = Text(f"{name} could not be examined: {where}", f"无法检查 {name}：{where}")
    return Gap(start.script, Message("experiments.own", said), command, tool=TOOL)


def _written(start: Start, command: str, notes: Path, left_out: frozenset[str]) -> str:
    return json.dumps(to_data(_look(start, command, notes, left_out)))


def _look(start: Start, command: str, notes: Path, left_out: frozenset[str]) -> Outcome:
    run, recorder = record(start)
    subject = Subject(start, run, recorder)
    shown: list[Shown] = []
    held: list[str] = []
    gaps: list[Gap] = []
    for module in all_relations():
        name = module.__name__.rpartition(".")[2]
        if name in left_out:
            continue
        so_far = _outcome(start, command, run, shown, held, gaps)
        notes.write_text(json.dumps(to_data(Notes(name, so_far))), "utf-8")
        try:
            examined = module.examine(subject)
        except (Exception, SystemExit) as error:  # our own fault: the others go on
            gaps.append(_own_fault(module, error, start, command))
            continue
        shown += examined.shown
        if examined.held is not None:
            held += examined.held
        elif examined.decided and not examined.shown:
            held += [rule.id for rule in module.RULES]
    return _outcome(start, command, run, shown, held, gaps)


def _outcome(
    start: Start, command: str, run: Run, shown: list[Shown], held: list[str], gaps: list[Gap]
) -> Outcome:
    found = {(item.rule.id, item.place): item for item in reversed(shown) if item.place}
    findings = tuple(_with_tool(finding_of(item, start.root, command)) for item in found.values())
    return Outcome(
        findings,
        tuple(gaps),
        len(run.steps),
        len(run.calls),
        tuple(held),
        run.ended,
        run.last_lines,
        _first_run(run),
        run.obstacle,
        run.stack,
    )


def _first_run(run: Run) -> FirstRun:
    places = [item.place for item in run.losses if item.step == 0]
    repeated = len(set(places)) == 1 and len(run.steps) > 0
    values = [item.value for item in run.losses]
    return FirstRun(
        tuple(
            values
            if len(values) <= 2 * _KEPT_LOSSES
            else values[:_KEPT_LOSSES] + values[-_KEPT_LOSSES:]
        ),
        len(values),
        run.losses[0].place if run.losses else NOWHERE,
        len(places) if repeated else 0,
        places[0] if repeated else NOWHERE,
        run.autocast,
    )


def _first_loss(first: FirstRun) -> float:
    return first.losses[0] if first.losses and math.isfinite(first.losses[0]) else 0.0


def _with_tool(finding: Finding) -> Finding:
    return replace(finding, tool=TOOL)
