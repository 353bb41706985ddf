"""What a comparison found, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torchstone.core.finding import Finding
from torchstone.core.place import Place
from torchstone.core.report import Report


@dataclass(frozen=True, slots=True)
class OperatorError:
    """One operator at one place of the program."""

    place: Place
    operator: str
    order: int
    calls: int
    inherited: float
    local_units: float
    """In units of the low format's rounding."""
    amplification: float
    total: float
    flips: int


@dataclass(frozen=True, slots=True)
class FirstBad:
    """The first place whose result is bad although what it was given was good."""

    place: Place
    operator: str
    kind: str
    """`nonfinite`, `amplified`, `absorbed`, or `flushed`."""
    entering: float
    leaving: float
    layer: str
    """The module that should stay in high precision."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A line after which the error is larger than it was anywhere before."""

    place: Place
    entering: float
    leaving: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Modules to keep in high precision, and the error that was then measured."""

    keep: tuple[str, ...]
    bound: float
    error_before: float
    error_after: float
    runs: int
    reached: bool
    stopped: str = ""
    """What the model said when it could not be run in high precision, so that nothing could be tried."""


@dataclass(frozen=True)
class PrecisionReport:
    """The comparison of a low-precision step with its shadow."""

    low: str
    high: str
    output_error: float
    """Norm of the difference of the outputs over their norm."""
    loss_low: float | None
    loss_high: float | None
    gradient_errors: dict[str, float]
    """Of each parameter, relative to the norm of all gradients."""
    operators: tuple[OperatorError, ...]
    growth: tuple[Growth, ...]
    """Lines of the forward pass at which the error grew, in their order."""
    first_bad: FirstBad | None
    plan: Plan | None
    simulated: bool
    flips: int
    notes: tuple[Any, ...]
    report: Report
    unexplained: bool = False
    """Results are worse than they may be, and no single line is the reason."""
    lang: str = "en"

    @property
    def loss_flushed(self) -> bool:
        """The loss is exactly zero, and should not be."""
        return self.loss_low == 0 and self.loss_high not in (None, 0.0)

    @property
    def gradient_error(self) -> float:
        """Of all gradients together."""
        return math.sqrt(sum(value * value for value in self.gradient_errors.values()))

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.report.findings

    def to(self, format: str, lang: str = "", **options: Any) -> str:
        return self.report.to(format, lang or self.lang, **options)

    def to_json(self, indent: int | None = 2) -> str:
        return self.report.to_json(indent)

    def __str__(self) -> str:
        return self.to("text")

    def _repr_html_(self) -> str:
        return self.report._repr_html_()
