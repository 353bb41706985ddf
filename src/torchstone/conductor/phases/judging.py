"""Whether a change fixed its problem, what else it did, and which run shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from torchstone.conductor.experiments import ASKED, BACKWARDS, FIRST_LOSS, HOLDS, against_one
from torchstone.conductor.jobs.job import Job
from torchstone.conductor.phases.before import SHOWN, is_shown_by_calls
from torchstone.conductor.phases.design import Solution
from torchstone.conductor.phases.matching import Moves
from torchstone.conductor.phases.problems import OUTSIDE, Problem
from torchstone.conductor.phases.verdicts import Verdict
from torchstone.conductor.project.testing import TestRun
from torchstone.conductor.tools import checks, experiments
from torchstone.conductor.words import counted
from torchstone.core.finding import Finding, Severity
from torchstone.core.report import Report
from torchstone.core.text import Text

_SAME_GRADIENT = 1e-4
"""Relative; the same program on the same data differs by rounding only."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A change on top of those that were accepted: the runs without it and with it."""

    jobs: tuple[Job, ...]
    then: list[Report]
    now: list[Report]
    tests_then: TestRun
    tests_now: TestRun
    moves: Moves
    """Where lines went since the project as it is, of which findings of problems speak."""
    since: Moves
    """Where they went since the accepted changes, of which the runs without it speak."""
    diff: str


def judge_change(
    problem: Problem, solution: Solution, trial: Trial, own: list[Finding], near: list[Finding]
) -> Verdict:
    """`own` must be gone; `near` is what runs have shown beside them."""
    now = [item for report in trial.now for item in report.findings]
    # what was only read on the same line may be another fault: the one that a run showed must go
    asked = [item for item in own if item.tool in SHOWN] or own
    still = [item for item in asked if trial.moves.find(item, now)]
    gone = tuple(sorted(item.fingerprint for item in own if not trial.moves.find(item, now)))
    worse, unmasked = _new_findings(trial)
    lost = trial.tests_now.worse_than(trial.tests_then)
    # what failed before the change is no fault of it
    broken = [
        report for then, report in zip(trial.then, trial.now, strict=True)
        if report.failed and not then.failed
    ]  # fmt: skip
    made = Verdict(
        problem.id, solution.id, "fixed", "applies", gone, worse, lost, diff=trial.diff,
        unmasked=unmasked,
    )  # fmt: skip
    if lost or worse or broken:
        why = _worse(worse, lost, broken)
        return replace(made, outcome="regressed", state="dropped", why=why)
    if still:
        why = Text("the finding is still there after the change", "修改之后该问题仍然存在")
        return replace(made, outcome="remaining", state="dropped", why=why)
    if less := less_ran(trial.then, trial.now):
        return replace(made, outcome="silenced", state="dropped", why=less)
    if problem.effect in ENDS_THE_RUN and not _comes_further(trial):
        return replace(made, outcome="silenced", state="dropped", why=_NO_FURTHER)
    # what an accepted change took away before is not this one's doing
    there = {(item.rule, item.path) for report in trial.then for item in report.findings}
    turned = [
        item for item in near if (item.rule, item.path) in there and not trial.moves.find(item, now)
    ]
    ran = {report.tool for report in trial.now}
    shown = [*own, *(item for item in turned if item.tool in ran)]
    check, why = check_that_turned(shown), Text("", "")
    if against_one.is_of(own) or (not check.en and any(is_shown_by_calls(item) for item in own)):
        check = agree_with_one(trial.then, trial.now)
    if not check.en:
        why = _why_unproven(own)
    elif (silent := _not_decided(shown, trial) or _lost_loss(shown, trial)) is not None:
        check, why = Text("", ""), silent
    return replace(
        made,
        state="proven" if check.en else "applies",
        check=check,
        why=why,
        others_gone=_others_gone(trial, own, now),
    )


ENDS_THE_RUN = ("crash", "hang")
_NO_FURTHER = Text(
    "the error is gone, but the program comes no further than before",
    "错误不再出现，但程序并没有比之前运行得更远",
)


def _comes_further(trial: Trial) -> bool:
    """More steps than before the change; or all steps had been made before the program ended."""
    for then, now in zip(trial.then, trial.now, strict=True):
        old = {item.name: item.value for item in then.measures}
        for item in now.measures:
            if item.name in _STEPS and (item.value > old.get(item.name, 0.0) or old.get(item.name)):
                return True
    return not any(item.name in _STEPS for report in trial.now for item in report.measures)


_STEPS = ("optimizer_steps", "steps")


def _not_decided(shown: list[Finding], trial: Trial) -> Text | None:
    """Silence of an experiment that no longer asks its question proves nothing."""
    held = {item.name for report in trial.now for item in report.measures if item.value}
    asked = [item for item in shown if item.tool == against_one.TOOL]
    asked = [item for item in asked if not against_one.is_of([item])]
    asked += [item for item in shown if f"{ASKED}{item.rule}" in held]
    for item in asked:
        if f"{HOLDS}{item.rule}" not in held:
            return Text(
                f"after the change {item.rule} can no longer be decided, so that its silence proves nothing",
                f"修改之后无法再判定 {item.rule}，因此其沉默不能作为证明",
            )
    return None


_FEWER = 0.8
"""Of the backward passes in a step: a loop whose last group is shorter varies less."""
_OTHER_LOSS = 64.0
"""A factor that no accumulation and no mean over a batch of a test run explains."""


def _lost_loss(shown: list[Finding], trial: Trial) -> Text | None:
    """A change after which the program trains on less, or on something else, shows by its silence that it is
    no longer asked; a check that somebody wrote may ask for just that change."""
    if any(item.tool == checks.NAME for item in shown):
        return None
    for then, now in zip(trial.then, trial.now, strict=True):
        old = {item.name: item.value for item in then.measures}
        new = {item.name: item.value for item in now.measures}
        if not {FIRST_LOSS, BACKWARDS} <= old.keys() & new.keys():
            continue
        if new[BACKWARDS] < _FEWER * old[BACKWARDS]:
            return Text(
                f"after the change a step has {new[BACKWARDS]:.3g} backward passes instead of {old[BACKWARDS]:.3g}",
                f"修改之后每步的反向传播由 {old[BACKWARDS]:.3g} 次变为 {new[BACKWARDS]:.3g} 次",
            )
        one, two = old[FIRST_LOSS], new[FIRST_LOSS]
        if one and not 1 / _OTHER_LOSS <= two / one <= _OTHER_LOSS:
            return Text(
                f"the change turns the first loss from {one:.4g} into {two:.4g}: that the finding is gone proves nothing",
                f"该修改使首个损失由 {one:.4g} 变为 {two:.4g}：问题消失不能作为证明",
            )
    return None


def _new_findings(trial: Trial) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """What the change broke, and what was only hidden before it."""
    worse: list[Finding] = []
    unmasked: list[Finding] = []
    for then, now in zip(trial.then, trial.now, strict=True):
        known = {
            id(match) for item in then.findings if (match := trial.since.find(item, now.findings))
        }
        for item in now.findings:
            if id(item) in known or item.severity is Severity.LOW or item.tool in OUTSIDE:
                continue
            (worse if was_decided(item, then, now) else unmasked).append(item)
    return tuple(worse), tuple(unmasked)


_ALWAYS_DECIDED = ("lint",)
"""Static rules see the whole project whatever happens when it runs."""


def was_decided(item: Finding, then: Report, now: Report) -> bool:
    """Whether the run before the change could have found this: it held there, or the run came as far."""
    if item.tool in _ALWAYS_DECIDED:
        return True
    values = {measure.name: measure.value for measure in then.measures}
    if values.get(f"{HOLDS}{item.rule}"):
        return True
    if f"{ASKED}{item.rule}" in values or item.tool == experiments.NAME:
        return False  # it can say that it holds, and did not
    if then.failed or then.gaps:
        return False
    came = {measure.name: measure.value for measure in now.measures if measure.name in _PROGRESS}
    return all(values.get(name, 0.0) >= _ENOUGH * value for name, value in came.items())


def _why_unproven(own: list[Finding]) -> Text:
    if any(item.rule.startswith("DR2") for item in own):
        return Text(
            "what made the values is no longer reported, but no run has looked at the values themselves",
            "值的来源不再被报告，但尚无运行检查这些值本身",
        )
    if any(item.tool in SHOWN for item in own):
        return Text(
            "the ranks no longer part, but no run has compared their values with those of one process",
            "各 rank 不再分歧，但尚无运行将其数值与单进程比较",
        )
    return Text(
        "no run showed the fault before the change, so none can show that it is gone",
        "修改前没有运行能展示该故障，因此无法通过运行证明其消失",
    )


def _others_gone(trial: Trial, own: list[Finding], now: list[Finding]) -> tuple[str, ...]:
    """What else the same runs found before the change and do not find any more."""
    mine = {item.fingerprint for item in own}
    return tuple(sorted({
        item.fingerprint for report in trial.then for item in report.findings
        if item.fingerprint not in mine and item.tool not in OUTSIDE
        and not trial.since.find(item, now)
    }))  # fmt: skip


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


def less_ran(before: list[Report], after: list[Report]) -> Text | None:
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


def agree_with_one(before: list[Report], after: list[Report]) -> Text:
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
    if all(then.get(against_one.HELD) for then, _ in compared):
        return Text("", "")  # they were equal before: the comparison does not see this fault
    return Text(
        "the gradients on 2 ranks equal those of one process with the same data, which did not change",
        "2 个 rank 上的梯度等于使用同样数据的单进程梯度，且后者保持不变",
    )


def check_that_turned(own: list[Finding]) -> Text:
    """The run that showed the fault before and does not now, by the values or by the crash that it saw."""
    shown = next(
        (item for item in own if item.tool in SHOWN and not is_shown_by_calls(item)),
        None,
    )
    if shown is None:
        return Text("", "")
    return Text(
        f"{shown.tool} {shown.rule} failed before and passes now: {shown.what.say('en')}",
        f"{shown.tool} {shown.rule} 修改前失败、修改后通过：{shown.what.say('zh')}",
    )
