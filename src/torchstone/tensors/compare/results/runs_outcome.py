"""What a comparison of two runs found, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchstone.core.finding import Finding
from torchstone.core.report import Report


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """One module in both runs."""

    name: str
    order: int
    entering: float
    leaving: float
    shapes: str = ""
    """Set where the outputs cannot be compared."""


@dataclass(frozen=True)
class RunsReport:
    """Where two runs part."""

    model_a: str
    model_b: str
    tolerance: float
    layers: tuple[LayerDifference, ...]
    first_divergence: LayerDifference | None
    output_error: float
    weights: dict[str, float]
    """Relative difference of parameters and buffers that differ."""
    gradients: dict[str, float]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    report: Report
    lang: str = "en"

    def to(self, format: str, lang: str = "", **options: Any) -> str:
        return self.report.to(format, lang or self.lang, **options)

    @property
    def agrees(self) -> bool:
        return self.first_divergence is None and self.output_error <= self.tolerance

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.report.findings

    def to_json(self, indent: int | None = 2) -> str:
        return self.report.to_json(indent)

    def __str__(self) -> str:
        return self.to("text")

    def _repr_html_(self) -> str:
        return self.report._repr_html_()
