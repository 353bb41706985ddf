"""Phase 4: for each problem the ways to fix it, weighed; the best is chosen, with an order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from torchstone.conductor.changes.alternatives import ALTERNATIVES
from torchstone.conductor.changes.patches import (
    FileChange,
    PatchError,
    changes_of,
    edits_of,
    is_silencing,
    read_text,
)
from torchstone.conductor.changes.policy import refuse_reach
from torchstone.conductor.choices import Choice, Lead, Option, Proposal
from torchstone.conductor.phases.problems import Interpretation, Problem
from torchstone.conductor.repairs import edits_for
from torchstone.conductor.words import counted
from torchstone.core.evidence import Number
from torchstone.core.finding import Finding
from torchstone.core.fix import Edit, Safety
from torchstone.core.text import Text

Kind = Literal["rule fix", "template", "configuration", "model", "by hand"]
Risk = Literal["low", "medium", "high"]
_RISKS: tuple[Risk, ...] = ("low", "medium", "high")
MOST_PROBLEMS = 20
"""Solutions are worked out for so many; the rest is in the JSON and SARIF files."""
_EXCERPT_LINES = 20
_WRITTEN_BY_OTHERS = Text(
    "not written by our tools: read it before you accept it", "并非由本工具编写：接受前请先阅读"
)


@dataclass(frozen=True, slots=True)
class Solution:
    """One way to fix a problem."""

    id: str
    problem: str
    kind: Kind
    title: Text
    edits: tuple[Edit, ...] = ()
    """Empty: a person has to write it."""
    pros: tuple[Text, ...] = ()
    cons: tuple[Text, ...] = ()
    lines: int = 0
    """Lines that it changes."""
    risk: Risk = "medium"
    gain: Number | None = None
    silencing: str = ""
    provable: bool = False
    """A run has shown what it repairs, so that a run can show that it is gone."""
    by: str = ""
    """Who wrote it: "model", "agent" or "person"; empty for edits of our own tools."""


@dataclass(frozen=True, slots=True)
class Step:
    """One problem in the order of the work."""

    problem: str
    solution: str
    after: tuple[str, ...] = ()
    """Problems whose solutions change the same lines or must be there first."""


@dataclass(frozen=True, slots=True)
class RefusedProposal:
    """A proposed change that may not be made, and why."""

    problem: str
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Design:
    """All solutions and the plan to carry them out."""

    solutions: tuple[Solution, ...]
    steps: tuple[Step, ...]
    risks: tuple[Text, ...] = ()
    refused: tuple[RefusedProposal, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    """Changes that a driver proposed, as they came."""

    def of(self, problem: str) -> tuple[Solution, ...]:
        return tuple(item for item in self.solutions if item.problem == problem)

    def with_chosen(self, solutions: Mapping[str, str]) -> Design:
        """With other solutions in the place of those that were chosen, by problem."""
        steps = tuple(
            replace(step, solution=solutions.get(step.problem, step.solution))
            for step in self.steps
        )
        return replace(self, steps=steps)

    def chosen(self, problem: str) -> Solution | None:
        ids = {step.solution for step in self.steps if step.problem == problem}
        return next((item for item in self.solutions if item.id in ids), None)


def design(
    found: Interpretation, root: Path, lead: Lead, proposals: Sequence[Proposal] = ()
) -> Design:
    """Solutions for the first problems, each chosen by the driver."""
    solutions: list[Solution] = []
    refused: list[RefusedProposal] = []
    chosen: dict[str, Solution] = {}
    came: list[Proposal] = []
    wanted = {item.problem for item in proposals}
    for place, problem in enumerate(found.problems):
        if place >= MOST_PROBLEMS and problem.id not in wanted:
            continue
        ways = _ways(problem, root)
        offered = [item for item in proposals if item.problem == problem.id]
        if not any(way.edits for way in ways) and not offered:
            proposal = lead.driver.propose(problem.id, excerpt(problem, root))
            offered = [proposal] if proposal else []
        came += offered
        for proposal in offered:
            way = _proposed(problem, proposal, len(ways), root)
            if isinstance(way, RefusedProposal):
                refused.append(way)
            else:
                ways.append(way)
        decision = lead.choose(_choice(problem, ways))
        solutions += ways
        chosen[problem.id] = next(item for item in ways if item.id == decision.chosen[0])
    steps = _steps(found, chosen)
    return Design(tuple(solutions), steps, _risks(chosen), tuple(refused), tuple(came))


def _ways(problem: Problem, root: Path) -> list[Solution]:
    """Fixes of the tools that found it, then what is known besides, then the remedy in words."""
    ways: list[Solution] = []
    for finding in (problem.finding, *problem.also):
        way = _rule_fix(problem, finding, len(ways), root)
        if way is not None and all(way.edits != other.edits for other in ways):
            ways.append(way)
    for finding in (problem.finding, *problem.also):
        for made in edits_for(finding, root):
            way = _rule_fix(problem, replace(finding, fix=made), len(ways), root)
            if way is not None and all(way.edits != other.edits for other in ways):
                ways.append(replace(way, kind="template"))
    for other in ALTERNATIVES.get(problem.finding.rule, ()):
        ways.append(Solution(
            f"{problem.id}-{len(ways) + 1}", problem.id, other.kind, other.title, (),
            other.pros, other.cons, risk=other.risk,
        ))  # fmt: skip
    finding = problem.finding
    if finding.remedy:
        ways.append(Solution(
            f"{problem.id}-{len(ways) + 1}", problem.id, "by hand",
            Text(finding.remedy.say("en"), finding.remedy.say("zh")), (),
            (Text("fits what the code around it is meant to do", "可与上下文的意图一致"),),
            (Text("nobody has tried it yet", "尚未经过验证"),), risk="medium", gain=finding.gain,
        ))  # fmt: skip
    if not ways:
        title = Text("change the line by hand", "手动修改该行")
        ways.append(Solution(f"{problem.id}-1", problem.id, "by hand", title))
    return ways


def _rule_fix(problem: Problem, finding: Finding, count: int, root: Path) -> Solution | None:
    same = [finding, *(item for item in problem.places if item.rule == finding.rule)]
    fixes = [item.fix for item in same if item.fix and item.fix.safety is not Safety.SHOW]
    if not fixes:
        return None
    edits = tuple(dict.fromkeys(edit for fix in fixes for edit in fix.edits))
    try:
        changes = changes_of(root, edits)
    except PatchError:
        return None
    if not changes:
        return None
    safe = all(fix.safety is Safety.SAFE for fix in fixes)
    says = fixes[0].says
    title = Text(says.say("en"), says.say("zh")) if says else Text(
        finding.remedy.say("en") or f"the fix of {finding.rule}",
        finding.remedy.say("zh") or f"{finding.rule} 的修复",
    )  # fmt: skip
    lines = changed_lines(changes)
    pros = [Text(f"{counted(lines, 'changed line')}, made by the tool that found it",
                 f"由发现问题的工具生成，改动 {lines} 行")]  # fmt: skip
    if len(same) > 1:
        pros.append(Text(f"one patch for {len(same)} places", f"一个补丁覆盖 {len(same)} 处"))
    cons = () if safe else (
        Text("right in the usual case only: read it before it goes in", "仅适用于常见情形：合入前请审阅"),
    )  # fmt: skip
    kind: Kind = "rule fix" if finding.tool == "check" else "template"
    return Solution(
        f"{problem.id}-{count + 1}", problem.id, kind, title, edits, tuple(pros), cons, lines,
        "low" if safe else "medium", finding.gain, provable=finding.tool in ("probes", "dryrun", "experiments"),
    )  # fmt: skip


def changed_lines(changes: Sequence[FileChange]) -> int:
    rows = [row for change in changes for row in change.diff().splitlines()]
    return sum(row[:1] == "+" and row[:3] != "+++" for row in rows) or 1


def _proposed(
    problem: Problem, proposal: Proposal, count: int, root: Path
) -> Solution | RefusedProposal:
    try:
        edits = edits_of(root, proposal.edits)
        changes = changes_of(root, edits)
    except PatchError as error:
        return RefusedProposal(problem.id, proposal.by, error.say("en"))
    if not changes:
        return RefusedProposal(problem.id, proposal.by, "it changes nothing")
    if why := refuse_reach(changes, root):
        return RefusedProposal(problem.id, proposal.by, why)
    said = " ".join(proposal.reason.split())[:300] or "a proposed change"
    return Solution(
        f"{problem.id}-{count + 1}", problem.id, "model", Text(said, said), edits,
        (Text("fits the surrounding code", "贴合上下文"),),
        (_WRITTEN_BY_OTHERS,), changed_lines(changes), "high", silencing=is_silencing(changes),
        by=proposal.by or "model",
    )  # fmt: skip


def _choice(problem: Problem, ways: list[Solution]) -> Choice:
    best = min(ways, key=_rank)
    return Choice(
        f"design.{problem.id}", "design",
        Text("which solution shall be tried?", "应尝试哪种方案？"),
        tuple(Option(way.id, way.title, way is best) for way in ways), least=1, most=1,
    )  # fmt: skip


def _rank(way: Solution) -> tuple[bool, bool, bool, int, int]:
    """What can be tried comes first, and what can be proven; then the lower risk, then the smaller change."""
    return (not way.edits, bool(way.silencing), not way.provable, _RISKS.index(way.risk), way.lines)


def _steps(found: Interpretation, chosen: dict[str, Solution]) -> tuple[Step, ...]:
    """The order of priority; a fix that others stand on comes before them."""
    steps: list[Step] = []
    for problem in found.problems:
        way = chosen.get(problem.id)
        if way is None:
            continue
        before = tuple(step.problem for step in steps if _touch(chosen[step.problem], way))
        steps.append(Step(problem.id, way.id, before))
    crashes = {item.id for item in found.problems if item.effect == "crash"}
    # what stops the program hides everything behind it
    return tuple(sorted(steps, key=lambda step: step.problem not in crashes))


def _touch(one: Solution, other: Solution) -> bool:
    """Whether two changes meet or are neighbours."""
    return any(
        a.path == b.path and a.cell == b.cell and a.line <= b.end_line + 1 and b.line <= a.end_line + 1
        for a in one.edits for b in other.edits
    )  # fmt: skip


def _risks(chosen: dict[str, Solution]) -> tuple[Text, ...]:
    risky = [way for way in chosen.values() if way.edits and way.risk != "low"]
    unmade = sum(not way.edits for way in chosen.values())
    risks: list[Text] = []
    if risky:
        risks.append(Text(
            f"right in the usual case only: {counted(len(risky), 'change')}; apply one by one, run the check of each",
            f"{len(risky)} 处修改仅适用于常见情形：请逐个应用并运行各自的检查",
        ))  # fmt: skip
    if unmade:
        risks.append(Text(
            f"no tool has an edit for {counted(unmade, 'problem')}: a person is needed",
            f"{unmade} 个问题需人工处理：没有工具给出修改",
        ))  # fmt: skip
    return tuple(risks)


def excerpt(problem: Problem, root: Path) -> str:
    """The finding and the lines around it, for whoever proposes a change."""
    finding = problem.finding
    rows = [f"finding: {finding.rule} {finding.what.say('en')}", f"why: {finding.why.say('en')}"]
    for place in (finding, *problem.places)[:3]:
        try:
            lines = read_text(root, place.path).splitlines()
        except (PatchError, OSError):
            continue
        first = max(place.line - _EXCERPT_LINES // 2, 1)
        rows.append(f"file: {place.path}, lines {first} to {first + _EXCERPT_LINES}")
        rows += lines[first - 1 : first - 1 + _EXCERPT_LINES]
    return "\n".join(rows)
