"""What became of solutions: the words of the last phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from torchstone.conductor.phases.design import Solution
from torchstone.conductor.phases.problems import OUTSIDE, Problem
from torchstone.conductor.project.testing import TestRun
from torchstone.core.finding import Finding
from torchstone.core.fix import Edit
from torchstone.core.text import Text

Outcome = Literal["fixed", "remaining", "regressed", "silenced", "not tried"]
PatchState = Literal["proven", "applies", "with others", "sketch", "dropped"]
OutcomeWords = {
    "fixed": Text("fixed", "已修复"), "remaining": Text("remaining", "仍存在"),
    "regressed": Text("regressed", "出现退化"), "silenced": Text("silenced by the edit", "仅被掩盖"),
    "not tried": Text("not tried", "未尝试"),
}  # fmt: skip
StateWords = {
    "proven": Text("proven patch", "补丁已验证"), "applies": Text("patch applies, unproven", "补丁可用，未验证"),
    "with others": Text("goes with other patches", "随其他补丁消失"), "sketch": Text("by hand", "需手动"), "dropped": Text("patch dropped", "补丁已放弃"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one solution."""

    problem: str
    solution: str
    outcome: Outcome
    state: PatchState
    gone: tuple[str, ...] = ()
    """Fingerprints of findings that are gone."""
    new: tuple[Finding, ...] = ()
    tests_lost: tuple[str, ...] = ()
    check: Text = Text("", "")
    """The check that failed before and passes now."""
    why: Text = Text("", "")
    diff: str = ""
    others_gone: tuple[str, ...] = ()
    """Fingerprints of findings of other problems that went with it."""
    unmasked: tuple[Finding, ...] = ()
    """Findings that only come up now because the program came further."""
    on_top_of: tuple[str, ...] = ()
    """Solutions that were in the tree when this one was tried."""
    kept: tuple[Edit, ...] = ()
    """What is left of the change where a part was split off because nothing proves it."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The validation report."""

    verdicts: tuple[Verdict, ...]
    together: Verdict | None = None
    """All proven changes at once."""
    everything: Verdict | None = None
    """These and the changes that nothing speaks against but no run has proven."""
    tests_before: TestRun = TestRun("none")
    tests_after: TestRun = TestRun("none")
    seconds: float = 0.0
    left_out: tuple[str, ...] = ()
    """Changes that meet another one and wait for the next round."""
    lessons: tuple[Text, ...] = ()
    unmasked: tuple[Finding, ...] = ()
    """What was hidden behind the problems that are fixed, on the lines of the project as it is."""
    cpu_seconds: float = 0.0

    def edits_of(self, way: Solution) -> tuple[Edit, ...]:
        """Of a change: what is proven of it, where a part was split off."""
        kept = [item.kept for item in self.verdicts if item.solution == way.id and item.kept]
        return kept[0] if kept else way.edits

    def of(self, problem: str) -> Verdict | None:
        return next((item for item in self.verdicts if item.problem == problem), None)

    @property
    def proven(self) -> tuple[Verdict, ...]:
        return tuple(item for item in self.verdicts if item.state == "proven")

    @property
    def with_others(self) -> tuple[Verdict, ...]:
        return tuple(item for item in self.verdicts if item.state == "with others")


def withdraw_proofs(verdicts: Sequence[Verdict], joint: Verdict | None) -> list[Verdict]:
    """Where the changes together make something worse, none of them is called proven: one of them does it."""
    if joint is None or joint.outcome != "regressed":
        return list(verdicts)
    worse = joint.new[0] if joint.new else None
    where = f": {worse.rule} at {worse.path}:{worse.line}" if worse is not None else ""
    where_zh = f"：{worse.path}:{worse.line} 的 {worse.rule}" if worse is not None else ""
    why = Text(
        f"its own run is as it should be, but with all changes together something became worse{where}",
        f"单独运行符合预期，但所有改动一起使结果变差{where_zh}",
    )
    return [
        replace(item, state="applies", why=why) if item.state == "proven" else item
        for item in verdicts
    ]


def with_consequences(
    verdicts: Sequence[Verdict], joint: Verdict | None, problems: dict[str, Problem]
) -> list[Verdict]:
    """Problems that no change of their own fixed, and that went with the proven changes of others:
    their cause is there."""
    proven = [item for item in verdicts if item.state == "proven"]
    return [
        item if item.outcome == "fixed" else _gone_with(item, problems, proven, joint)
        for item in verdicts
    ]


def _gone_with(
    item: Verdict, problems: dict[str, Problem], proven: Sequence[Verdict], joint: Verdict | None
) -> Verdict:
    own = {
        finding.fingerprint
        for finding in problems[item.problem].findings
        if finding.tool not in OUTSIDE
    }
    if len(proven) > 1 and all(own <= set(other.others_gone) for other in proven):
        return item  # it stayed away whatever was changed: a run shows it only now and then
    place = problems[item.problem].finding
    # runs draw random numbers: a finding that once stays away has its cause there only where a
    # change of the same file took it away
    near = [
        cause for other in proven
        if own and own <= set(other.others_gone)
        and (cause := problems[other.problem]).finding.path == place.path
    ]  # fmt: skip
    if near:
        cause = min(near, key=lambda problem: abs(problem.finding.line - place.line))
        title = cause.finding.what
        why = Text(f"it goes with the patch of {cause.id}: {title.say('en')}",
                   f"随 {cause.id} 的补丁一起消失：{title.say('zh')}")  # fmt: skip
    elif joint is not None and joint.outcome == "fixed" and own and own <= set(joint.others_gone):
        why = Text("it goes with the proven patches together", "随全部已验证补丁一起消失")
    else:
        return item
    return replace(
        item,
        outcome="fixed",
        state="with others",
        gone=tuple(sorted(own)),
        new=(),
        why=why,
        diff="",
    )
