"""Phase 6: every change alone and all together in a copy: what is proven, what got worse."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from torchstone.conductor.changes.patches import (
    FileChange,
    PatchError,
    changes_of,
    diff_of,
    is_silencing,
    together,
    write_changes,
)  # fmt: skip
from torchstone.conductor.jobs.job import Job
from torchstone.conductor.jobs.side_by_side import side_by_side
from torchstone.conductor.phases.before import ALWAYS, SHOWN, Before
from torchstone.conductor.phases.confirmation import Proof, is_by_checks, refuse_proof
from torchstone.conductor.phases.design import Design, Solution
from torchstone.conductor.phases.execute import run_job
from torchstone.conductor.phases.judging import check_that_turned, judge_change
from torchstone.conductor.phases.problems import OUTSIDE, Interpretation, Problem
from torchstone.conductor.phases.verdicts import (
    Verdict,
    Verification,
    with_consequences,
)
from torchstone.conductor.project.copying import Copy, copied, digest_of
from torchstone.conductor.project.testing import TestRun, run_tests
from torchstone.core.finding import Finding
from torchstone.core.fix import Edit
from torchstone.core.report import Report
from torchstone.core.text import Text


def verify(
    found: Interpretation,
    plan_of_work: Design,
    before: Before,
    progress: Callable[[int, int, str], None],
    until: float,
) -> Verification:
    """Each chosen change alone, then the proven ones together. `until` is a time of the clock
    after which nothing new is begun."""
    started = time.monotonic()
    problems = {item.id: item for item in found.problems}
    tried = [
        (problems[step.problem], solution)
        for step in plan_of_work.steps
        if (solution := plan_of_work.chosen(step.problem)) is not None
    ]
    count = [0]

    def one(pair: tuple[Problem, Solution]) -> Verdict:
        progress(count[0], len(tried), pair[0].id)
        count[0] += 1
        if time.monotonic() > until:
            return _not_tried(*pair, Text("the time for this review is used up", "评审时间已用尽"))
        return try_alone(*pair, before)

    verdicts = side_by_side(one, tried, before.conditions.workers)
    edits = {solution.id: solution.edits for _, solution in tried}
    proven = [item.solution for item in verdicts if item.state == "proven"]
    fixed = [item.solution for item in verdicts if item.outcome == "fixed"]
    joint, after, left = _join(proven, edits, tried, before, until)
    hidden = [item for item in verdicts if _brings_to_light(item, tried)]
    if hidden and not (joint is not None and joint.tests_lost):
        names = [*proven, *(item.solution for item in hidden)]
        wider, tests, others = _join(names, edits, tried, before, until)
        if wider is not None and wider.outcome == "fixed" and not others:
            # what each alone brought to light is gone when all are there: none of them caused it
            verdicts = [_cleared(item, tried) if item in hidden else item for item in verdicts]
            joint, after, left = wider, tests, others
            proven = [item.solution for item in verdicts if item.state == "proven"]
            fixed = [item.solution for item in verdicts if item.outcome == "fixed"]
    if joint is not None and joint.tests_lost:
        # one of them breaks a test: each is tried with the tests alone, the rest together again
        verdicts = [
            _with_tests(item, pair, before, until)
            for item, pair in zip(verdicts, tried, strict=True)
        ]
        proven = [item.solution for item in verdicts if item.state == "proven"]
        fixed = [item.solution for item in verdicts if item.outcome == "fixed"]
        joint, after, left = _join(proven, edits, tried, before, until)
    if joint is not None and joint.outcome == "regressed":
        verdicts = [_blamed(item) if item.state == "proven" else item for item in verdicts]
    everything = joint
    if fixed != proven:
        everything, _, more = _join(fixed, edits, tried, before, until)
        left = tuple(dict.fromkeys((*left, *more)))
    verdicts = with_consequences(verdicts, joint, problems)
    return Verification(
        tuple(verdicts), joint, everything, before.tests, after, time.monotonic() - started, left,
        _lessons(verdicts, problems),
    )  # fmt: skip


def _join(
    names: list[str], edits: dict[str, tuple[Edit, ...]], tried: list[tuple[Problem, Solution]],
    before: Before, until: float,
) -> tuple[Verdict | None, TestRun, tuple[str, ...]]:  # fmt: skip
    """Several changes at once: the verdict, the tests after it, and what has to wait."""
    kept, left = together({name: edits[name] for name in names})
    if not kept or time.monotonic() > until:
        return None, before.tests, left
    verdict, tests = _try_together(kept, edits, tried, before)
    return verdict, tests, left


def _with_tests(
    item: Verdict, pair: tuple[Problem, Solution], before: Before, until: float
) -> Verdict:
    if item.outcome != "fixed" or time.monotonic() > until:
        return item
    problem, solution = pair
    return _try(problem, solution, solution.edits, before, problem.findings, with_tests=True)[0]


def _brings_to_light(item: Verdict, tried: list[tuple[Problem, Solution]]) -> bool:
    """The finding is gone, and only findings elsewhere are new: another fault may have been hidden
    behind this one."""
    problem = next(problem for problem, solution in tried if solution.id == item.solution)
    own = {finding.fingerprint for finding in problem.findings if finding.tool not in OUTSIDE}
    return (
        item.outcome == "regressed" and bool(item.new) and not item.tests_lost
        and own <= set(item.gone)
    )  # fmt: skip


def _cleared(item: Verdict, tried: list[tuple[Problem, Solution]]) -> Verdict:
    problem = next(problem for problem, solution in tried if solution.id == item.solution)
    check = check_that_turned([x for x in problem.findings if x.tool not in OUTSIDE])
    why = Text(
        "alone it brings another fault to light; together with the other changes nothing new comes",
        "单独应用会暴露另一个故障；与其他修改一起应用时没有新问题",
    )
    return replace(item, outcome="fixed", state="proven" if check.en else "applies", check=check, why=why)  # fmt: skip


def _blamed(item: Verdict) -> Verdict:
    why = Text("together with the others something got worse: apply it alone",
               "与其他修改一起应用时出现退化：请单独应用")  # fmt: skip
    return replace(item, state="applies", why=why)


def _not_tried(problem: Problem, solution: Solution, why: Text) -> Verdict:
    return Verdict(
        problem.id, solution.id, "not tried", "sketch" if not solution.edits else "applies", why=why
    )


def try_alone(problem: Problem, solution: Solution, before: Before) -> Verdict:
    """One change in a copy of its own."""
    if not solution.edits:
        return _not_tried(problem, solution, Text("no tool has an edit for it", "没有工具给出修改"))
    every = before.tests.state == "ran" and before.plan.scope.reaches("deep")
    return _try(problem, solution, solution.edits, before, problem.findings, every)[0]


def _try(
    problem: Problem, solution: Solution, edits: tuple[Edit, ...], before: Before,
    findings: tuple[Finding, ...], with_tests: bool, looked_for: tuple[Finding, ...] = (),
    confirm: bool = True,
) -> tuple[Verdict, TestRun]:  # fmt: skip
    """`findings` must be gone after the edits; the runs that found `looked_for` are made again, too."""
    try:
        changes = changes_of(before.copy.project, edits)
    except PatchError as error:
        why = Text(error.say("en"), error.say("zh"))
        return Verdict(problem.id, solution.id, "not tried", "sketch", why=why), before.tests
    diff = diff_of(changes)
    own = [item for item in findings if item.tool not in OUTSIDE]
    more = before.jobs_that_found(item for item in looked_for if item.tool not in OUTSIDE)
    jobs = tuple(dict.fromkeys((*before.jobs_that_found(own), *more)))
    with changed_copy(before, changes) as changed:
        reports = _run_again(jobs, changed, before)
        tests = (
            run_tests(changed, before.plan.facts.tests.files, before.conditions.use_cache)
            if with_tests
            else before.tests
        )
    verdict = judge_change(problem, solution, before, jobs, reports, tests, own, diff)
    if confirm and verdict.state == "proven":
        unproven = _refuse_proof(solution, before, own, changes)
        if unproven is not None:
            verdict = replace(verdict, state="applies", why=unproven, check=Text("", ""))
    silencing = "" if solution.kind == "rule fix" else is_silencing(changes)
    if silencing and verdict.outcome == "fixed":
        why = Text(f"silenced by the edit: it {silencing}", f"仅被修改掩盖：{silencing}")
        verdict = Verdict(problem.id, solution.id, "silenced", "dropped", why=why, diff=diff)
    return verdict, tests


@contextlib.contextmanager
def changed_copy(before: Before, changes: tuple[FileChange, ...]) -> Iterator[Copy]:
    """The project with changes made, in a folder of its own."""
    original = before.copy.original
    with copied(before.copy.project, original) as copy:
        write_changes(copy.project, changes)
        yield Copy(copy.home, copy.project, original, digest_of(copy.project, original))


def _run_again(jobs: Iterable[Job], copy: Copy, before: Before) -> list[Report]:
    return [run_job(replace(job, try_fixes=False), copy, before.conditions).report for job in jobs]


def _refuse_proof(
    solution: Solution, before: Before, own: list[Finding], changes: tuple[FileChange, ...]
) -> Text | None:
    """The fault must come back when the change is taken back, whole or in parts."""
    shown = [item for item in own if item.tool in SHOWN]
    jobs = [job for job in before.jobs_that_found(shown) if job.tool != ALWAYS]
    wanted = {item.fingerprint for item in shown}
    # what a check showed is run anew: a stored answer would repeat itself
    conditions = replace(
        before.conditions, use_cache=before.conditions.use_cache and not is_by_checks(own)
    )

    def shows(parts: tuple[FileChange, ...]) -> bool:
        with changed_copy(before, parts) as copy:
            reports = _run_again(jobs, copy, replace(before, conditions=conditions))
        failed = any(
            report.failed and not then.failed
            for then, report in zip(before.reports(jobs), reports, strict=True)
        )
        found = {item.fingerprint for report in reports for item in report.findings}
        return failed or bool(wanted & found)

    return refuse_proof(Proof(changes, shows, bool(solution.by), is_by_checks(own)))


def _try_together(
    kept: tuple[str, ...], good: dict[str, tuple[Edit, ...]],
    tried: list[tuple[Problem, Solution]], before: Before,
) -> tuple[Verdict, TestRun]:  # fmt: skip
    pairs = [(problem, solution) for problem, solution in tried if solution.id in kept]
    edits = tuple(edit for name in kept for edit in good[name])
    findings = tuple(item for problem, _ in pairs for item in problem.findings)
    problem, solution = pairs[0]
    with_tests = before.tests.state == "ran"
    every = tuple(item for problem, _ in tried for item in problem.findings)
    verdict, tests = _try(
        problem, solution, edits, before, findings, with_tests, every, confirm=False
    )
    return replace(verdict, problem="all", solution="all"), tests


def _lessons(verdicts: list[Verdict], problems: dict[str, Problem]) -> tuple[Text, ...]:
    """What this review taught about its own tools and fixes."""
    lessons: list[Text] = []
    for item in verdicts:
        rule = problems[item.problem].finding.rule
        if item.outcome in ("regressed", "remaining"):
            lessons.append(Text(
                f"the fix of {rule} does not hold here: {item.why.en}",
                f"{rule} 的修复在此不成立：{item.why.zh}",
            ))  # fmt: skip
    return tuple(dict.fromkeys(lessons))
