"""Phase 3: one list of problems across all tools, ordered by what to fix first."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from torchstone.conductor.choices import Choice, Lead, Option
from torchstone.conductor.jobs.job import Scope
from torchstone.conductor.phases.execute import Execution
from torchstone.conductor.phases.problems import (
    CONFIDENCE,
    COST,
    EFFECT_WEIGHT,
    NO_MARKS,
    OUTSIDE,
    SEVERITY_FACTOR,
    Effect,
    EffectWords,
    EvidenceKind,
    Interpretation,
    Marks,
    Priority,
    Problem,
    RootCause,
    SetAside,
)
from torchstone.conductor.project.facts import ProjectFacts
from torchstone.conductor.project.reach import Reach, ReachMap
from torchstone.conductor.repairs import ONE_BY_ONE
from torchstone.conductor.words import counted
from torchstone.core.finding import Confidence, Finding, Severity
from torchstone.core.fix import Safety
from torchstone.core.report import RuleInfo
from torchstone.core.text import Text

_LIMIT_REJECTED = 0.1
"""Share of marks against a rule above which it drops to the appendix: reviews that exceed it are
switched off by their readers."""


def interpret(
    execution: Execution,
    facts: ProjectFacts,
    scope: Scope,
    reach: ReachMap,
    lead: Lead,
    marks: Marks = NO_MARKS,
    changed: Mapping[str, set[int] | None] | None = None,
) -> Interpretation:
    """Merge, judge and order what the tools found."""
    rules = {key: info for report in execution.reports for key, info in report.rules.items()}
    findings, aside = _sorted_out(_unique(execution), scope, marks)
    own = [item for item in findings if item.tool not in OUTSIDE]
    others = [item for item in findings if item.tool in OUTSIDE]
    groups = _patterns(_merged(own, rules))
    ranks = _ranks(facts)
    problems = [_problem(group, others, rules, reach, ranks, marks, changed) for group in groups]
    problems.sort(key=_order)
    fresh = [item for item in problems if item.changed]
    counted: dict[str, int] = defaultdict(int)
    for item in others:
        counted[item.tool] += 1
    causes = _root_causes(fresh, lead)
    return Interpretation(
        tuple(fresh), tuple(aside), dict(counted), len(problems) - len(fresh), causes
    )


def _root_causes(problems: list[Problem], lead: Lead) -> tuple[RootCause, ...]:
    """Problems of one effect in one function may have one cause: the driver decides which do."""
    groups: dict[tuple[str, str, str], list[Problem]] = defaultdict(list)
    for item in problems:
        if item.reach.scope:
            groups[item.finding.path, item.reach.scope, item.effect].append(item)
    offered = [
        RootCause(
            f"cause-{items[0].id[2:]}", tuple(item.id for item in items),
            Text(f"{len(items)} problems in {scope} with the same effect: {effect}",
                 f"{scope} 中 {len(items)} 个影响相同的问题：{EffectWords[items[0].effect].zh}"),
        )
        for (_, scope, effect), items in groups.items()
        if len(items) > 1
    ]  # fmt: skip
    if not offered:
        return ()
    shown = {item.id for item in problems if item.evidence == "shown"}
    decision = lead.choose(Choice(
        "interpret.causes", "interpret",
        Text("which of these groups have one root cause?", "哪些组具有同一根本原因？"),
        # a run that showed the effect ties the static findings around it together
        tuple(Option(item.id, item.why, bool(shown & set(item.problems))) for item in offered),
        data="\n".join(f"{item.id} {item.finding.what.say('en')}" for item in problems),
    ))  # fmt: skip
    return tuple(item for item in offered if item.id in decision.chosen)


def _order(problem: Problem) -> tuple[float, float, str, int]:
    size = sum(len(item.fix.edits) for item in problem.findings if item.fix)
    return (-round(problem.priority.value, 6), size, problem.finding.path, problem.finding.line)


def _ranks(facts: ProjectFacts) -> int:
    documented = max(
        (item.ranks for entry in facts.entry_points for item in entry.launches), default=1
    )
    return max(documented, 2) if facts.parallel else documented


def _unique(execution: Execution) -> list[Finding]:
    """Each finding once: two runs of one script see the same line."""
    seen: dict[tuple[str, str, int], Finding] = {}
    for report in execution.reports:
        for item in report.findings:
            key = (item.rule, item.path, item.line or hash(str(item.location)))
            seen.setdefault(key, item)
    return list(seen.values())


def _sorted_out(
    findings: list[Finding], scope: Scope, marks: Marks
) -> tuple[list[Finding], list[SetAside]]:
    kept: list[Finding] = []
    aside: list[SetAside] = []
    for item in findings:
        why = _why_aside(item, scope, marks)
        if why:
            aside.append(SetAside(item, why))
        else:
            kept.append(item)
    return kept, aside


def _why_aside(item: Finding, scope: Scope, marks: Marks) -> Text | None:
    mark = marks.by_fingerprint.get(item.fingerprint)
    if mark in ("reject", "false-positive"):
        return Text(f"marked {mark} in an earlier review", f"在此前的评审中被标记为 {mark}")
    share = marks.rejected_share.get(item.rule, 0.0)
    if share > _LIMIT_REJECTED:
        return Text(
            f"{share:.0%} of this rule's findings were rejected here",
            f"该规则在此项目中 {share:.0%} 的结果被拒绝",
        )
    component = scope.component.strip("/")
    if component and not (item.path == component or item.path.startswith(f"{component}/")):
        return Text(f"outside {component}", f"不在 {component} 之内")
    return None


def _merged(findings: Iterable[Finding], rules: Mapping[str, RuleInfo]) -> list[list[Finding]]:
    """Findings of different tools on one line are one problem; the strongest evidence leads. A finding of
    another effect with an edit of its own is another problem: its edit does not fix the first."""
    by_line: dict[tuple[str, int], list[list[Finding]]] = defaultdict(list)
    out: list[list[Finding]] = []
    for item in sorted(findings, key=_strength):
        here = by_line[item.path, item.line] if item.path and item.line else []
        for group in here:
            fits = item.fix is None or effect_of(item, rules) == effect_of(group[0], rules)
            if fits and all(other.tool != item.tool for other in group):
                group.append(item)
                break
        else:
            group = [item]
            here.append(group)
            out.append(group)
    return out


def _strength(item: Finding) -> tuple[int, int, str, int, str]:
    kinds = list(CONFIDENCE)
    return (kinds.index(evidence_kind(item)), item.severity.rank, item.path, item.line, item.rule)


def _patterns(groups: list[list[Finding]]) -> list[tuple[list[Finding], list[Finding]]]:
    """The same rule in several places is one problem with several places, where one patch can serve
    all: a place without an edit would leave the patch of the others unproven."""
    found: dict[tuple[str, str], tuple[list[Finding], list[Finding]]] = {}
    for group in groups:
        first = group[0]
        edit = any(item.fix and item.fix.safety is not Safety.SHOW for item in group)
        kind = first.fingerprint if first.rule in ONE_BY_ONE else "with an edit" if edit else ""
        key = (first.rule, kind)
        if key in found:
            found[key][1].extend(group)
        else:
            found[key] = (group, [])
    return list(found.values())


def evidence_kind(item: Finding) -> EvidenceKind:
    """How a finding is known."""
    if item.tool in ("dryrun", "probes", "experiments", "models", "tests", "checks"):
        return "shown"
    if item.tool in ("cost", "tensors", "tensor", "flow"):
        return "measured"
    if item.tool in ("model", "claims"):
        return "suggested"
    if item.tool == "ruff" or item.confidence is Confidence.POSSIBLE:
        return "matched"
    return "derived"


_BY_GROUP: dict[str, Effect] = {
    "precision": "instability", "correctness": "wrong result", "distributed": "wrong result",
    "performance": "slow", "upgrade": "upkeep", "torchstone": "upkeep", "shapes": "crash",
    "ranks": "hang", "memory": "crash",
}  # fmt: skip
_BY_RULE: dict[str, Effect] = {
    # a rank waits for others that never come
    **dict.fromkeys(("TS401", "TS402", "TS403", "TS416"), "hang"),
    # every rank goes on, with values of its own or that are not there yet
    **dict.fromkeys(("DR607", "DR608", "DR609", "DR610", "DR611", "DR612"), "wrong result"),
    # the program goes on with a table of all against all, or contradicts what it says about itself
    **dict.fromkeys(("DR201", "DR203", "DR204", "DR205", "DR206"), "wrong result"),
    "DR202": "slow",
}
"""Where the rules of a group do not all end in the same way."""


def effect_of(item: Finding, rules: Mapping[str, RuleInfo]) -> Effect:
    """What happens when nobody fixes it."""
    info = rules.get(item.rule)
    group = info.group if info else ""
    if group in EFFECT_WEIGHT:  # a rule may name its effect itself
        return group
    effect = _BY_RULE.get(item.rule) or _BY_GROUP.get(group, "upkeep")
    if effect == "instability" and item.severity is Severity.LOW:
        return "upkeep"  # old names of what still works
    if effect == "hang" and item.severity is not Severity.HIGH:
        return "slow" if item.severity is Severity.LOW else "wrong result"
    return effect


def _problem(
    group: tuple[list[Finding], list[Finding]],
    others: list[Finding],
    rules: Mapping[str, RuleInfo],
    reach: ReachMap,
    ranks: int,
    marks: Marks,
    changed: Mapping[str, set[int] | None] | None,
) -> Problem:
    (first, *also), places = group
    beside = [item for item in others if (item.path, item.line) == (first.path, first.line)]
    kind = evidence_kind(first)
    severity = min((item.severity for item in (first, *also)), key=lambda level: level.rank)
    if severity is Severity.HIGH and kind in ("matched", "suggested"):
        severity = Severity.MEDIUM  # HIGH needs a derivation or better
    where = reach.of(first.path, first.line)
    effect = effect_of(first, rules)
    complexity = _complexity(first, places)
    factors = Priority(
        EFFECT_WEIGHT[effect] * SEVERITY_FACTOR[severity],
        1 + math.log2(1 + where.callers) / 2 + where.every_step + (ranks > 1),
        CONFIDENCE[kind] * (1 - marks.rejected_share.get(first.rule, 0.0)),
        0.1 if where.in_tests else 1.0 if where.from_entry or where.every_step else 0.5,
        COST[complexity],
    )
    return Problem(
        f"p-{first.fingerprint[:8]}", first, (*also, *beside), tuple(places), effect, severity, kind,
        where, ranks, complexity, factors, _cause(first, also, beside, where, ranks),
        _is_changed((first, *places), changed),
    )  # fmt: skip


def _complexity(first: Finding, places: list[Finding]) -> str:
    files = {item.path for item in (first, *places)}
    if len(files) > 1:
        return "files"
    if first.fix and sum(edit.end_line - edit.line + 1 for edit in first.fix.edits) <= 2:
        return "line"
    return "function"


def _cause(
    first: Finding, also: list[Finding], beside: list[Finding], where: Reach, ranks: int
) -> tuple[Text, ...]:
    """From what was seen to why, a line each."""
    tool = first.tool
    chain = [Text(f"{tool}: {first.what.say('en')}", f"{tool}：{first.what.say('zh')}")]
    chain += [
        Text(f"{item.tool} says of the same line: {item.what.say('en')}",
             f"{item.tool} 对同一行的结论：{item.what.say('zh')}")
        for item in (*also, *beside)
    ]  # fmt: skip
    if where.scope:
        often = Text(", in every step", "，每一步") if where.every_step else Text("", "")
        chain.append(Text(
            f"it is in {where.scope}{often.en}, on {counted(ranks, 'rank')} at least",
            f"位于 {where.scope}{often.zh}，至少 {ranks} 个 rank",
        ))  # fmt: skip
    if first.why:
        chain.append(Text(f"because {first.why.say('en')}", f"原因：{first.why.say('zh')}"))
    return tuple(chain)


def _is_changed(
    findings: tuple[Finding, ...], changed: Mapping[str, set[int] | None] | None
) -> bool:
    if changed is None:
        return True
    for item in findings:
        lines = changed.get(item.path, set())
        if lines is None or item.line in lines:
            return True
    return False


def with_cost(problem: Problem, complexity: str) -> Problem:
    """The same problem with what its fix really costs, once that is known."""
    return replace(
        problem, complexity=complexity, priority=replace(problem.priority, cost=COST[complexity])
    )
