"""What the third phase hands on: problems with their priorities, root causes, what was set aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from torchstone.conductor.project.reach import Reach
from torchstone.core.finding import Finding, Severity
from torchstone.core.text import Text

Effect = Literal["wrong result", "hang", "crash", "instability", "slow", "upkeep"]
EffectWords: dict[Effect, Text] = {
    "wrong result": Text("wrong result", "结果错误"),
    "hang": Text("hang", "挂起"),
    "crash": Text("crash", "崩溃"),
    "instability": Text("numerical instability", "数值不稳定"),
    "slow": Text("slow", "性能损失"),
    "upkeep": Text("upkeep", "维护性"),
}
EvidenceKind = Literal["shown", "measured", "derived", "matched", "suggested"]
EvidenceWords: dict[EvidenceKind, Text] = {
    "shown": Text("shown by a run", "由运行证实"),
    "measured": Text("measured", "实测"),
    "derived": Text("derived from the code", "由代码推导"),
    "matched": Text("matched a pattern", "匹配模式"),
    "suggested": Text("suggested by a model", "由模型提出"),
}
# Weights of the priority, with their reasons.
EFFECT_WEIGHT: dict[Effect, float] = {
    "wrong result": 8.0,  # silent, and everything trained on it is lost
    "hang": 8.0,  # a job of many machines waits until somebody notices
    "crash": 6.0,  # tells its own story, so it ranks below what is silent
    "instability": 4.0,  # shows on some runs
    "slow": 2.0,
    "upkeep": 1.0,
}
SEVERITY_FACTOR = {Severity.HIGH: 1.0, Severity.MEDIUM: 0.6, Severity.LOW: 0.25}
CONFIDENCE: dict[EvidenceKind, float] = {
    "shown": 1.0, "measured": 0.9, "derived": 0.8, "matched": 0.6, "suggested": 0.3,
}  # fmt: skip
COST = {"proven": 0.0, "line": 0.5, "function": 1.0, "files": 2.0, "design": 4.0}
OUTSIDE = ("mypy", "ruff")
"""Tools of others: counted, and listed only where they stand beside a problem."""


@dataclass(frozen=True, slots=True)
class Priority:
    """P = S · R · C · E / (1 + K), each factor shown."""

    severity: float
    reach: float
    confidence: float
    exposure: float
    cost: float

    @property
    def value(self) -> float:
        return self.severity * self.reach * self.confidence * self.exposure / (1 + self.cost)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to fix: a finding, what other tools say of the same place, and where else it stands."""

    id: str
    finding: Finding
    also: tuple[Finding, ...] = ()
    """The same place seen by other tools."""
    places: tuple[Finding, ...] = ()
    """The same error elsewhere; one patch for all."""
    effect: Effect = "wrong result"
    severity: Severity = Severity.MEDIUM
    evidence: EvidenceKind = "matched"
    reach: Reach = Reach()
    ranks: int = 1
    complexity: str = "function"
    priority: Priority = Priority(0, 0, 0, 0, 0)
    cause: tuple[Text, ...] = ()
    """The chain of evidence, from what was seen to why."""
    changed: bool = True
    """It stands on lines that changed since the commit in question."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (self.finding, *self.also, *self.places)

    @property
    def where(self) -> str:
        return f"{self.finding.path}:{self.finding.line}" if self.finding.path else "-"


@dataclass(frozen=True, slots=True)
class RootCause:
    """Problems that come from one mistake, and what ties them together."""

    id: str
    problems: tuple[str, ...]
    why: Text


@dataclass(frozen=True, slots=True)
class SetAside:
    """A finding that is no problem of this review, and why."""

    finding: Finding
    why: Text


@dataclass(frozen=True, slots=True)
class Interpretation:
    """The problem report."""

    problems: tuple[Problem, ...]
    """The first is the one to fix first."""
    set_aside: tuple[SetAside, ...] = ()
    counted: Mapping[str, int] = field(default_factory=dict)
    """Findings of other tools that are only counted."""
    older: int = 0
    """Problems on lines that did not change since the commit in question."""
    causes: tuple[RootCause, ...] = ()
    late: tuple[str, ...] = ()
    """Fingerprints of findings that came to light when others were fixed: they are tried after those."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What the user said of findings in earlier reviews."""

    by_fingerprint: Mapping[str, str]
    rejected_share: Mapping[str, float]


NO_MARKS = Marks({}, {})
