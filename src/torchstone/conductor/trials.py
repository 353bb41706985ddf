"""Single experiments on a project, without a review: a check on the tree as it is, and on a changed copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torchstone.conductor.changes.patches import (
    FileChange,
    PatchError,
    changes_of,
    check_path,
    diff_of,
    edits_of,
    write_changes,
)
from torchstone.conductor.changes.policy import refuse_reach
from torchstone.conductor.choices import TextEdit, refuse_size
from torchstone.conductor.experiments import HOLDS, against_one
from torchstone.conductor.experiments.checks.check import Check, make_check
from torchstone.conductor.experiments.results import Result
from torchstone.conductor.phases.confirmation import Proof, refuse_proof
from torchstone.conductor.phases.execute import Conditions, run_job
from torchstone.conductor.project.copying import copied
from torchstone.conductor.project.reach import map_reach
from torchstone.conductor.tools import checks, experiments
from torchstone.core.finding import Finding, Severity
from torchstone.core.pictures import Table
from torchstone.core.report import Report
from torchstone.sources.program.outline import Key

_FRESH = Conditions(use_cache=False)
_MOST_NEIGHBOURS = 50


@dataclass(frozen=True, slots=True)
class TriedPatch:
    """A check before and after a change."""

    before: Result = Result("not decided")
    after: Result = Result("not decided")
    diff: str = ""
    refused: str = ""
    """Why the change may not be made, or why it is not proven although the check turned."""

    @property
    def proven(self) -> bool:
        return (self.before.state, self.after.state) == ("broken", "holds") and not self.refused


def check_for(root: Path, code: str, file: str = "") -> Check:
    """A check without a claim; `file` is the file of the project beside which it looks for modules."""
    place = file or next((path.name for path in sorted(root.glob("*.py"))), "")
    if not place:
        place = next(path.relative_to(root).as_posix() for path in sorted(root.glob("**/*.py")))
    return make_check(place, 1, "a check", Severity.MEDIUM, code, "agent", root)


def try_check(root: Path, check: Check, changes: tuple[FileChange, ...] = ()) -> Result:
    """The check in the sandbox, on a copy with these changes."""
    with copied(root) as copy:
        write_changes(copy.project, changes)
        done = run_job(checks.job_of(check), copy, _FRESH)
    report = done.report
    if report.findings:
        said = report.findings[0].why.args.get("said", "")
        return Result("broken", str(said))
    if report.gaps:
        return Result("not decided", "; ".join(gap.reason.say("en") for gap in report.gaps))
    return Result("holds")


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to start a program of the project, perhaps with something changed."""

    script: str
    arguments: tuple[str, ...] = ()
    edits: tuple[TextEdit, ...] = ()


def observe_run(root: Path, variant: Variant) -> Report:
    """The record of a run: losses, rates, and the project's functions with what they were given."""
    check_path(root, variant.script)
    changes = changes_of(root, edits_of(root, variant.edits))
    with copied(root) as copy:
        write_changes(copy.project, changes)
        job = experiments.observe_job(variant.script, variant.arguments)
        return run_job(job, copy, _FRESH).report


@dataclass(frozen=True, slots=True)
class Relations:
    """Built-in relations on one program."""

    broken: tuple[Finding, ...] = ()
    held: tuple[str, ...] = ()
    said: str = ""


def run_relations(root: Path, variant: Variant, ranks: bool) -> Relations:
    """All of them on a script with any arguments; `ranks`: two ranks against one process instead."""
    check_path(root, variant.script)
    with copied(root) as copy:
        job = experiments.relations_job(variant.script, variant.arguments, ranks)
        report = run_job(job, copy, _FRESH).report
    names = {item.name: item.value for item in report.measures}
    held = [
        name.removeprefix(HOLDS)
        for name, value in names.items()
        if name.startswith(HOLDS) and value
    ]
    held += ["EX201", "EX202"] if names.get(against_one.HELD) else []
    rows = [f"optimizer steps: {names['steps']:.0f}"] if "steps" in names else []
    if not ranks and not names.get("steps"):
        rows.append("no relation of training could be asked: give arguments with which it trains")
    rows += [gap.reason.say("en") for gap in report.gaps]
    return Relations(report.findings, tuple(held), "; ".join(rows))


@dataclass(frozen=True, slots=True)
class Around:
    """A function of the project and its neighbours."""

    function: str = ""
    every_step: bool = False
    callers: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


def look_around(root: Path, file: str, line: int) -> Around:
    """Who calls the function around a line, and what it calls. Nothing is run."""
    check_path(root, file)
    program = map_reach(root, ()).program
    function = program.function_at(file, line)
    key = function.key if function is not None else Key(file, "")
    callers = [
        f"{edge.caller.path}:{program.line_of(edge)} {edge.caller.scope}".rstrip()
        for edge in program.edges
        if edge.called == key
    ]
    calls = [
        f"{edge.called.path}:{program.first_line(edge.called)} {edge.called.scope}".rstrip()
        for edge in program.edges
        if edge.caller == key and edge.called.scope
    ]
    return Around(
        key.scope,
        program.runs_in_every_step(file, line),
        tuple(dict.fromkeys(callers))[:_MOST_NEIGHBOURS],
        tuple(dict.fromkeys(calls))[:_MOST_NEIGHBOURS],
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """The losses of two variants, and the first step at which they part."""

    one: tuple[float, ...]
    other: tuple[float, ...]
    parts_at: int = -1
    """-1: they agree as far as both go."""
    said: str = ""


def compare_variants(root: Path, one: Variant, other: Variant, tolerance: float) -> Compared:
    """Two runs side by side: where do their losses part?"""
    left, right = observe_run(root, one), observe_run(root, other)
    said = "; ".join(gap.reason.say("en") for report in (left, right) for gap in report.gaps)
    a, b = _losses(left), _losses(right)
    apart = (
        place
        for place, (x, y) in enumerate(zip(a, b, strict=False))
        if not math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance)
    )
    return Compared(a, b, next(apart, -1), said)


def _losses(report: Report) -> tuple[float, ...]:
    tables = [
        item for measure in report.measures if measure.name == "steps" for item in measure.evidence
    ]
    rows = tables[0].rows if tables and isinstance(tables[0], Table) else ()
    return tuple(float(row[1]) for row in rows if isinstance(row[1], int | float))


def try_patch(root: Path, check: Check, edits: Sequence[TextEdit]) -> TriedPatch:
    """The check before and after the edits, and whether they are what turns it."""
    if why := refuse_size(edits):
        return TriedPatch(refused=why)
    try:
        changes = changes_of(root, edits_of(root, edits))
    except PatchError as error:
        return TriedPatch(refused=error.say("en"))
    if why := refuse_reach(changes, root):
        return TriedPatch(diff=diff_of(changes), refused=why)
    tried = TriedPatch(try_check(root, check), try_check(root, check, changes), diff_of(changes))
    if not tried.proven:
        return tried

    def shows(parts: tuple[FileChange, ...]) -> bool:
        return try_check(root, check, parts).state != "holds"

    unproven = refuse_proof(Proof(changes, shows, by_others=True, by_checks=True))
    return replace(tried, refused=unproven.why.en if unproven else "")
