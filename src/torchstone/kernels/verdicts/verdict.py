"""A verdict: what every gate said of a candidate, and whether it is accepted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from torchstone.core.measure import Measure
from torchstone.core.report import Report
from torchstone.kernels.candidate import Candidate
from torchstone.kernels.gate import all_gates
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.problem import Problem

LONGEST_FIELD = 800
"""Characters of one field in a prompt: a few wrong cases fit, a file does not."""
Outcome = Literal["accepted", "rejected", "smaller", "none"]
"""`smaller`: right at smaller sizes, and the problem's own could not be run; `none`: not verified."""


@dataclass(frozen=True, slots=True)
class WrongElement:
    """One element that is not what the reference gives."""

    case: str
    index: str
    expected: str
    got: str
    wrong: int
    elements: int
    error: float | None = None
    """In roundings: what rounding alone does to this element, through all steps of the problem."""
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """All gates on one candidate; accepted when none failed and every one that decides ran."""

    problem: Problem
    candidate: Candidate
    results: tuple[GateResult, ...]
    outcome: Outcome
    measures: tuple[Measure, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    crash: str = ""
    """Why our own machinery failed: the verdict is then no verdict (exit 3)."""
    first_wrong: WrongElement | None = None

    @property
    def accepted(self) -> bool:
        return self.outcome == "accepted"

    @property
    def exit_code(self) -> int:
        """0 accepted, 1 rejected, 3 where something could not be run."""
        return {"accepted": 0, "rejected": 1}.get(self.outcome, 3)

    @property
    def failed(self) -> tuple[GateResult, ...]:
        return tuple(item for item in self.results if item.status == "failed")

    def error_log(self) -> str:
        """What went wrong, for a prompt: byte for byte the same for the same inputs.

        Of each gate that did not pass: its name, its status, its detail, its cause and its remedy,
        nothing else, and each of limited length.
        """
        if self.accepted:
            return ""
        lines = []
        for item in self.results:
            if item.status in ("failed", "gap"):
                lines.append(f"[{item.gate}] {item.status}: {_bounded(item.detail.en)}")
            if item.status == "failed":
                gate = next(gate for gate in all_gates() if gate.name == item.gate)
                remedy = item.remedy.en or gate.remedy.en
                lines += [f"[{item.gate}] cause: {_bounded(item.why.en)}"] if item.why.en else []
                lines += [f"[{item.gate}] remedy: {_bounded(remedy)}"] if remedy else []
        return "\n".join(lines)

    def report(self) -> Report:
        """The verdict as findings, measures and gaps."""
        from torchstone.kernels.verdicts.report import report_of

        return report_of(self)


def _bounded(text: str) -> str:
    """A field of a prompt: one line of printable characters, cut where it grows too long."""
    line = "".join(item if item.isprintable() else " " for item in text)
    return line if len(line) <= LONGEST_FIELD else f"{line[:LONGEST_FIELD]} …"
