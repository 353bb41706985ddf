"""Phase 6: every change alone and all together in a copy: what is proven, what got worse."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from torchstone.conductor.changes.patches import (
    FileChange,
    PatchError,
    changes_of,
    diff_of,
    is_silencing,
    together,
    write_changes,
)  # fmt: skip
from torchstone.conductor.experiments import against_one
from torchstone.conductor.jobs.job import Job
from torchstone.conductor.jobs.side_by_side import side_by_side
from torchstone.conductor.phases.confirmation import Proof, is_by_checks, refuse_proof
from torchstone.conductor.phases.design import Design, Solution
from torchstone.conductor.phases.execute import Conditions, Execution, run_job
from torchstone.conductor.phases.plan import Plan
from torchstone.conductor.phases.problems import OUTSIDE, Interpretation, Problem
from torchstone.conductor.phases.verdicts import (
    PatchState,
    Verdict,
    Verification,
    with_consequences,
)
from torchstone.conductor.project.copying import Copy, copied, digest_of
from torchstone.conductor.project.testing import TestRun, run_tests
from torchstone.conductor.tools.experiments import RANKS_JOB
from torchstone.conductor.words import counted
from torchstone.core.finding import Finding, Severity
from torchstone.core.fix import Edit
from torchstone.core.report import Report
from torchstone.core.text import Text

_SHOWN = ("dryrun", "probes", "experiments", "checks")
_SHOWN_BY_CALLS = ("DR6", "PR4")
"""Families of rules that compare which calls the ranks make, or whether ranks are equal: a wrong fix can
make the right calls with the wrong values, so that their silence proves nothing."""
_CRASH_ON_ALL_RANKS = "DR600"
_SAME_GRADIENT = 1e-4
"""Relative; the same program on the same data differs by rounding only."""
_NEAR = 8
"""Lines: a cause and what a run shows of it stand in one function."""
_ALWAYS = "lint"
"""Asked again after every change: it costs little and sees the whole project."""


@dataclass(frozen=True, slots=True)
class Before:
    """The project as it is: what every change is compared with."""

    plan: Plan
    execution: Execution
    copy: Copy
    tests: TestRun
    conditions: Conditions

    def jobs_that_found(self, findings: Iterable[Finding]) -> tuple[Job, ...]:
        """The runs in which these findings came up, and the static rules. What no run has shown may
        be the cause of what a run shows elsewhere in the same function: then that run, too."""
        given = list(findings)
        wanted = {item.fingerprint for item in given}
        if not any(item.tool in _SHOWN for item in given):
            wanted |= {item.fingerprint for item in self.shown_near(given)}
        ids = {
            result.job
            for result in self.execution.results
            if any(item.fingerprint in wanted for item in result.report.findings)
        }
        ids |= {result.job for result in self.execution.results if result.tool == _ALWAYS}
        if any(_is_shown_by_calls(item) for item in given):  # only values can prove their fix
            ids |= {job.id for job in self._against_one(ids)}
        return tuple(job for job in self.plan.jobs if job.id in ids)

    def _against_one(self, ids: set[str]) -> list[Job]:
        """The comparisons with one process of the scripts that these jobs run."""
        words = {word for job in self.plan.jobs if job.id in ids for word in job.arguments}
        ran = {result.job for result in self.execution.results}
        return [
            job
            for job in self.plan.jobs
            if job.id.startswith(RANKS_JOB) and job.id in ran and job.arguments[1] in words
        ]

    def shown_near(self, findings: Iterable[Finding]) -> list[Finding]:
        """What runs have shown in the functions of these findings."""
        near = [(item.path, item.line) for item in findings]
        return [
            item for report in self.execution.reports for item in report.findings
            if item.tool in _SHOWN
            and any(item.path == path and abs(item.line - line) <= _NEAR for path, line in near)
        ]  # fmt: skip

    def reports(self, jobs: Iterable[Job]) -> list[Report]:
        """What these runs said, in their order."""
        found = {result.job: result.report for result in self.execution.results}
        return [found[job.id] for job in jobs]


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
    check = _check_that_turned([x for x in problem.findings if x.tool not in OUTSIDE])
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
    verdict = _judge(problem, solution, before, jobs, reports, tests, own, diff)
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
    shown = [item for item in own if item.tool in _SHOWN]
    jobs = [job for job in before.jobs_that_found(shown) if job.tool != _ALWAYS]
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


def _judge(
    problem: Problem, solution: Solution, before: Before, jobs: tuple[Job, ...],
    reports: list[Report], tests: TestRun, own: list[Finding], diff: str,
) -> Verdict:  # fmt: skip
    old = {item.fingerprint for report in before.reports(jobs) for item in report.findings}
    now = {item.fingerprint: item for report in reports for item in report.findings}
    gone = tuple(sorted({item.fingerprint for item in own} - set(now)))
    # a finding of the same rule at the edited place is the old one in new words
    still = [item for item in own if item.fingerprint in now or _same_place(item, now, old)]
    rules = {item.rule for item in own}
    new = tuple(
        item for key, item in now.items()
        if key not in old and item.severity is not Severity.LOW
        and item.tool not in OUTSIDE and item.rule not in rules
    )  # fmt: skip
    lost = tests.worse_than(before.tests)
    # what failed before the change is no fault of it
    broken = [
        report for then, report in zip(before.reports(jobs), reports, strict=True)
        if report.failed and not then.failed
    ]  # fmt: skip
    if lost or new or broken:
        return Verdict(problem.id, solution.id, "regressed", "dropped", gone, new, lost,
                       why=_worse(new, lost, broken), diff=diff)  # fmt: skip
    if still:
        why = Text("the finding is still there after the change", "修改之后该问题仍然存在")
        return Verdict(problem.id, solution.id, "remaining", "dropped", gone, why=why, diff=diff)
    if less := _less_ran(before.reports(jobs), reports):
        return Verdict(problem.id, solution.id, "silenced", "dropped", gone, why=less, diff=diff)
    others = _others_gone(before.reports(jobs), own, now, old)
    turned = [item for item in before.shown_near(own) if item.fingerprint not in now]
    ran = {report.tool for report in reports}
    check = _check_that_turned([*own, *(item for item in turned if item.tool in ran)])
    if not check.en and any(_is_shown_by_calls(item) for item in own):
        check = _agree_with_one(before.reports(jobs), reports)
    state: PatchState = "proven" if check.en else "applies"
    why = Text("", "") if check.en else _why_unproven(own)
    return Verdict(
        problem.id, solution.id, "fixed", state, gone, check=check, why=why, diff=diff,
        others_gone=others,
    )  # fmt: skip


def _why_unproven(own: list[Finding]) -> Text:
    if any(item.tool in _SHOWN for item in own):
        return Text(
            "the ranks no longer part, but no run has compared their values with those of one process",
            "各 rank 不再分歧，但尚无运行将其数值与单进程比较",
        )
    return Text(
        "no run showed the fault before the change, so none can show that it is gone",
        "修改前没有运行能展示该故障，因此无法通过运行证明其消失",
    )


def _others_gone(
    before: list[Report], own: list[Finding], now: dict[str, Finding], old: set[str]
) -> tuple[str, ...]:
    """What else the same runs found before the change and do not find any more."""
    mine = {item.fingerprint for item in own}
    return tuple(sorted({
        item.fingerprint for report in before for item in report.findings
        if item.fingerprint not in mine and item.fingerprint not in now
        and item.tool not in OUTSIDE and not _same_place(item, now, old)
    }))  # fmt: skip


def _same_place(item: Finding, now: dict[str, Finding], old: set[str]) -> bool:
    return any(
        key not in old and other.rule == item.rule and other.path == item.path
        and abs(other.line - item.line) <= 2
        for key, other in now.items()
    )  # fmt: skip


def _worse(new: tuple[Finding, ...], lost: tuple[str, ...], broken: list[Report]) -> Text:
    if lost:
        return Text(f"lost: {counted(len(lost), 'test')} that passed before, as {lost[0]}",
                    f"{len(lost)} 个原本通过的测试失败：{lost[0]}")  # fmt: skip
    if new:
        first = new[0]
        return Text(f"a new finding: {first.rule} at {first.path}:{first.line}",
                    f"出现新问题：{first.rule} 位于 {first.path}:{first.line}")  # fmt: skip
    return Text(f"{broken[0].tool} fails after the change", f"修改之后 {broken[0].tool} 运行失败")


_PROGRESS = ("optimizer_steps", "steps", "modules", "decided")
"""Measures that say how far the program came: after a fix it must come as far as before."""

_ENOUGH = 0.5
"""Scripts are run for a few seconds: on a busy machine one and the same script makes fewer steps."""


def _less_ran(before: list[Report], after: list[Report]) -> Text | None:
    """Why silence means nothing: the program no longer does what showed the fault."""
    for old, new in zip(before, after, strict=True):
        now = {item.name: item.value for item in new.measures if item.name in _PROGRESS}
        for item in old.measures:
            if item.name in _PROGRESS and now.get(item.name, 0) < _ENOUGH * item.value:
                return Text(
                    f"after the change less of the program runs ({item.name}: {item.value:g} before, {now.get(item.name, 0):g} now)",
                    f"修改之后程序运行得更少（{item.name}：之前 {item.value:g}，现在 {now.get(item.name, 0):g}）",
                )
    return None


def _agree_with_one(before: list[Report], after: list[Report]) -> Text:
    """The values behind the calls: after the change the ranks have the gradients of one process, and
    those of one process are what they were before it."""
    pairs = [
        ({item.name: item.value for item in then.measures}, {item.name: item.value for item in now.measures})
        for then, now in zip(before, after, strict=True)
        if now.tool == against_one.TOOL
    ]  # fmt: skip
    compared = [(then, now) for then, now in pairs if against_one.HELD in now]
    same = all(
        math.isclose(then.get(name, 0.0), now.get(name, 1.0), rel_tol=_SAME_GRADIENT)
        for then, now in compared
        for name in against_one.ALONE
    )
    if not compared or not same or not all(now[against_one.HELD] for _, now in compared):
        return Text("", "")
    return Text(
        "the gradients on 2 ranks equal those of one process with the same data, which did not change",
        "2 个 rank 上的梯度等于使用同样数据的单进程梯度，且后者保持不变",
    )


def _is_shown_by_calls(item: Finding) -> bool:
    return item.rule.startswith(_SHOWN_BY_CALLS) and item.rule != _CRASH_ON_ALL_RANKS


def _check_that_turned(own: list[Finding]) -> Text:
    """The run that showed the fault before and does not now, by the values or by the crash that it saw."""
    shown = next(
        (item for item in own if item.tool in _SHOWN and not _is_shown_by_calls(item)),
        None,
    )
    if shown is None:
        return Text("", "")
    return Text(
        f"{shown.tool} {shown.rule} failed before and passes now: {shown.what.say('en')}",
        f"{shown.tool} {shown.rule} 修改前失败、修改后通过：{shown.what.say('zh')}",
    )


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
