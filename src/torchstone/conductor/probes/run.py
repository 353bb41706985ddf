"""From a script of the project to findings: harvest, checks, and edits that were tried.

Each run is a process of its own, forked from one that has torch loaded.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import os
import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch  # noqa: F401  loaded once, before the forks

from torchstone.conductor.experiments import ASKED, BACKWARDS, FIRST_LOSS, HOLDS
from torchstone.conductor.probes.checks import all_checks
from torchstone.conductor.probes.harvest.recording import Backward, OptimizerStep, Recording
from torchstone.conductor.probes.processes import answers_of, used_by_children
from torchstone.conductor.probes.ranks import (
    ALL_RULES,
    ASKED_OF_RANKS,
    RankFacts,
    compare_ranks,
    facts_of,
    held_by_ranks,
)
from torchstone.conductor.probes.rules import TOOL, Shown, finding_of
from torchstone.core.codec import from_data, to_data
from torchstone.core.finding import Finding
from torchstone.core.fix import Edit, Fix, apply_edits
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.place import Place
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.dryrun.reporting.supplied import rest_on, supply_measures
from torchstone.sources.discover import SKIPPED
from torchstone.starting.loop import Attempt, Started, run_with_repairs
from torchstone.starting.obstacles import Obstacle
from torchstone.starting.supplies import Supply

SCRIPT_SECONDS = 5.0
"""For the script itself; the checks on what it left take their own time."""
_TEST_SECONDS = 3.0
_LARGE_BYTES = 4 << 20
_MOST_GAPS = 4
_TRIAL_SECONDS = 8.0
"""CPU time of all trials of edits; what is not tried here is tried when patches are verified."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A script of the project with its arguments."""

    root: Path
    script: str
    arguments: tuple[str, ...]
    tests: tuple[str, ...] = ()
    world: int = 1
    pretend: bool = True
    """The script is told that there is an accelerator."""
    supplies: tuple[Supply, ...] = ()
    """What stands in the place of what is missing here."""

    @property
    def command(self) -> str:
        start = "python" if self.world == 1 else f"torchrun --nproc-per-node={self.world}"
        return " ".join((start, self.script, *self.arguments))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one process saw."""

    findings: tuple[Finding, ...] = ()
    others: tuple[tuple[Fix, ...], ...] = ()
    """For each finding, the edits that come after the first."""
    gaps: tuple[Gap, ...] = ()
    steps: int = 0
    modules: int = 0
    ended: str = ""
    first_loss: float = 0.0
    held: tuple[str, ...] = ()
    """Rules that can say by themselves that they hold, and do."""
    backwards: float = 0.0
    """Backward passes for each optimizer step."""
    rank: RankFacts = RankFacts()
    obstacle: Obstacle | None = None
    stack: tuple[Place, ...] = ()


def probe(subject: Subject, try_fixes: bool = True) -> Report:
    """Every check on one script."""
    started = _start(subject)
    outcome, subject = started.outcome, replace(subject, supplies=started.supplies)
    findings = _tried(subject, outcome) if try_fixes else outcome.findings
    findings = rest_on(findings, started.supplies)
    rules = {key: module.RULE.info() for key, module in all_checks().items()}
    rules |= {rule.id: rule.info() for rule in ALL_RULES}
    return Report(
        TOOL,
        findings,
        (*_progress(outcome), *supply_measures(started.supplies)),
        outcome.gaps,
        rules=rules,
        subject=subject.command,
    )


def _start(subject: Subject) -> Started[Outcome]:
    """The script with what it lacks; several ranks are started as they are."""

    def run(supplies: tuple[Supply, ...]) -> Attempt[Outcome]:
        before = used_by_children()
        outcome = _outcome(replace(subject, supplies=supplies))
        return Attempt(outcome, outcome.obstacle, outcome.stack, used_by_children() - before)

    if subject.world > 1:
        return Started(_outcome(subject), (), 1)
    return run_with_repairs(run, subject.root, subject.root / subject.script)


def _outcome(subject: Subject) -> Outcome:
    """One process, or as many as there are ranks; the checks on modules are made on the first."""
    if subject.world == 1:
        (outcome,) = _outcomes([functools.partial(_look, subject)])
        if subject.pretend and "CUDA" in outcome.ended:  # it asks for more than can be pretended
            return _outcome(replace(subject, pretend=False))
        return outcome
    importlib.import_module("torch._dynamo")  # collectives need it: loaded once for all ranks
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        store = str(Path(folder, "store"))

        works = [functools.partial(_look, subject, rank, store) for rank in range(subject.world)]
        outcomes = _outcomes(works)
    shown = compare_ranks(subject.root, [item.rank for item in outcomes])
    findings = tuple(finding_of(item, subject.root, subject.command) for item in shown)
    made = _joined(
        (outcomes[0], outcomes[-1], Outcome(findings, tuple(item.fixes[1:] for item in shown)))
    )
    held = held_by_ranks([item.rank for item in outcomes], shown)
    return replace(made, held=(*made.held, *held))


def _joined(outcomes: tuple[Outcome, ...]) -> Outcome:
    """The first outcome with what the others found besides."""
    pairs = {item.fingerprint: (item, others) for outcome in reversed(outcomes)
             for item, others in zip(outcome.findings, outcome.others, strict=True)}  # fmt: skip
    found = tuple(pairs.values())
    return replace(
        outcomes[0],
        findings=tuple(item for item, _ in found),
        others=tuple(others for _, others in found),
    )


def _progress(outcome: Outcome) -> tuple[Measure, ...]:
    """How far the script came."""
    how = Text("counted while the script ran", "脚本运行时计数")
    return (
        Measure(
            "steps",
            outcome.steps,
            "",
            how,
            Text("optimizer steps seen by the probes", "探针所见的优化步数"),
            tool=TOOL,
        ),
        Measure(
            BACKWARDS,
            outcome.backwards,
            "",
            how,
            Text("backward passes in a step", "每步反向传播次数"),
            tool=TOOL,
        ),
        *(
            Measure(f"{ASKED}{name}", 1.0, "", how, Text(name, name), tool=TOOL)
            for name in (*ASKED_OF_RANKS, *_asked())
        ),
        *(
            Measure(
                f"{HOLDS}{name}", 1.0, "", how, Text(f"{name} holds", f"{name} 成立"), tool=TOOL
            )
            for name in outcome.held
        ),
        Measure(FIRST_LOSS, outcome.first_loss, "", how, Text("first loss", "首个损失"), tool=TOOL),
        Measure(
            "modules",
            outcome.modules,
            "",
            how,
            Text("modules seen by the probes", "探针所见的模块数"),
            tool=TOOL,
        ),
    )


def _look(subject: Subject, rank: int = 0, store: str = "") -> Outcome:
    from torchstone.conductor.probes.harvest.group import FileGroup
    from torchstone.conductor.probes.harvest.session import harvest, harvest_tests

    os.chdir(subject.root)  # what the script writes stays in its project
    run, hooks = harvest(subject.root, subject.script, subject.arguments, SCRIPT_SECONDS, rank,
                         subject.world, store, subject.pretend, subject.supplies)  # fmt: skip
    hooks.silence()
    FileGroup.end_exchange()
    if 0 < rank < subject.world - 1:  # stages differ most between the first and the last rank
        return Outcome(rank=facts_of(run))
    if subject.tests and not rank and not _enough_modules(run):
        harvest_tests(hooks, subject.tests, _TEST_SECONDS)
    shown: list[Shown] = []
    gaps: list[Gap] = []
    held: list[str] = []
    if run.ended not in ("", "time"):
        gaps.append(
            _gap(subject, f"the script ended early: {run.ended}", f"脚本提前结束：{run.ended}")
        )
    for module in all_checks().values():
        try:
            found = list(module.check(run))
            shown += found
            asked = module.holds(run) if hasattr(module, "holds") else module.RULE.id in run.asked
            if not found and asked:
                held.append(module.RULE.id)
        except Exception as error:  # one property that cannot be checked leaves the others
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{type(error).__name__}: {str(error)[:160]} ({Path(last.filename).name}:{last.lineno})"
            gaps.append(_gap(subject, f"{module.RULE.id} could not be checked: {where}",
                             f"无法检查 {module.RULE.id}：{where}"))  # fmt: skip
    gaps += [
        _gap(subject, f"{name} could not be called again: {why}", f"无法再次调用 {name}：{why}")
        for name, why in list(run.not_probed.items())[:_MOST_GAPS]
    ]
    kept = _distinct(shown)
    findings = tuple(finding_of(item, subject.root, subject.command) for item in kept)
    first = next((item.loss for item in run.events if isinstance(item, Backward)), 0.0)
    return Outcome(
        findings,
        tuple(item.fixes[1:] for item in kept),
        tuple(gaps),
        run.steps,
        len(run.modules),
        run.ended,
        first if math.isfinite(first) else 0.0,
        tuple(sorted(held)),
        _backwards_per_step(run),
        facts_of(run),
        run.obstacle,
        run.stack,
    )


def _asked() -> list[str]:
    return [name for name, module in all_checks().items() if hasattr(module, "holds")]


def _backwards_per_step(run: Recording) -> float:
    steps = sum(isinstance(item, OptimizerStep) for item in run.events)
    return sum(isinstance(item, Backward) for item in run.events) / steps if steps else 0.0


def _enough_modules(run: Recording) -> bool:
    """Whether the script itself called every module class that it imported."""
    return bool(run.calls) and not run.ended


def _distinct(shown: Iterable[Shown]) -> list[Shown]:
    """One finding for one rule and line."""
    found: dict[tuple[str, Place], Shown] = {}
    for item in shown:
        found.setdefault((item.rule.id, item.place), item)
    return list(found.values())


def _gap(subject: Subject, en: str, zh: str) -> Gap:
    return Gap(subject.script, Message("probes.gap", Text(en, zh)), subject.command, tool=TOOL)


def _tried(subject: Subject, outcome: Outcome) -> tuple[Finding, ...]:
    """Findings with the first edit that makes them go, where there are several to choose from."""
    until = used_by_children() + _TRIAL_SECONDS
    findings: list[Finding] = []
    for finding, others in zip(outcome.findings, outcome.others, strict=True):
        fixes = (finding.fix, *others) if finding.fix else ()
        chosen = finding.fix
        for fix in fixes if others else ():
            if used_by_children() > until:
                break
            if _holds(subject, finding, fix, outcome):
                chosen = replace(fix, proof=subject.command)
                break
        findings.append(replace(finding, fix=chosen))
    return tuple(findings)


def _holds(subject: Subject, finding: Finding, fix: Fix, outcome: Outcome) -> bool:
    """Whether the finding is gone after the edit and nothing new came."""
    before = {item.fingerprint for item in outcome.findings}
    with tempfile.TemporaryDirectory(prefix="probe-") as folder:
        root = Path(folder, "project")
        _copy_project(subject.root, root)
        if not _apply(root, fix.edits):
            return False
        after = _outcome(replace(subject, root=root))
    now = {item.fingerprint for item in after.findings}
    moved = [
        item
        for item in after.findings
        if item.fingerprint not in before and item.rule == finding.rule
    ]
    gone = finding.fingerprint not in now and not moved
    fresh = [item for item in after.findings if item.fingerprint not in before]
    return gone and not fresh and len(after.gaps) <= len(outcome.gaps)


def _copy_project(source: Path, target: Path) -> None:
    """Contents only: behind walls neither modes nor times of files can be set. Large files are linked."""
    for place, folders, names in os.walk(source):
        folders[:] = [name for name in folders if name not in SKIPPED]
        home = target / Path(place).relative_to(source)
        home.mkdir(parents=True, exist_ok=True)
        for name in names:
            file = Path(place, name)
            if file.is_symlink() or file.stat().st_size > _LARGE_BYTES:
                (home / name).symlink_to(file.resolve())
            else:
                (home / name).write_bytes(file.read_bytes())


def _apply(root: Path, edits: tuple[Edit, ...]) -> bool:
    for path in {edit.path for edit in edits}:
        file = root / path
        text = file.read_text("utf-8")
        try:
            file.write_text(
                apply_edits(text, [edit for edit in edits if edit.path == path]), "utf-8"
            )
        except ValueError:
            return False
    return True


def _outcomes(works: Sequence[Callable[[], Outcome]]) -> list[Outcome]:
    """Each in a process of its own, all at the same time."""
    answers = answers_of([functools.partial(_written, work) for work in works])
    return [_read(text, late) for text, late in answers]


def _written(work: Callable[[], Outcome]) -> str:
    return json.dumps(to_data(work()))


def _read(text: str | None, late: bool) -> Outcome:
    if text is not None:
        return from_data(Outcome, json.loads(text), "outcome")
    reason = Text("it took too long", "超时") if late else Text("its process ended", "进程异常结束")
    return Outcome(gaps=(Gap("probes", Message("probes.child", reason), "", tool=TOOL),))
