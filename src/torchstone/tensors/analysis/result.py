"""What `analyze_tensor` gives: readable as a mapping, as an object, as text and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from torchstone.core.finding import Finding
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.tensors.analysis.errors.figures import Figures
from torchstone.tensors.analysis.errors.reductions import Reduction
from torchstone.tensors.analysis.remedies import Remedy


@dataclass(frozen=True, slots=True)
class Contents:
    """What kinds of values a tensor holds."""

    total: int
    zeros: int
    nans: int
    infinities: int
    smallest: float
    """The smallest nonzero magnitude."""
    median: float
    largest: float
    exponents: Mapping[int, int]
    """How many values there are in each octave."""
    holds_16_bits: bool

    @property
    def octaves_above_median(self) -> float:
        """log2 of the largest over the median magnitude: what one shared scale has to span."""
        import math

        return math.log2(self.largest / self.median) if self.median > 0 else 0.0


@dataclass(frozen=True)
class TensorReport(Mapping[str, Any]):
    """The analysis of one tensor; every field is a key too."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    axis: int | None
    """The axis whose indices are compared; None for scalars and vectors."""
    dim_stats: Mapping[int, Mapping[str, float]]
    dim_ratio: float
    absmax_ratio: float
    small_index_lost: float
    """Share of the smallest index that a 16-bit sum with the largest one loses."""
    risk_level: str
    suggestions: Text
    contents: Contents
    formats: tuple[Figures, ...]
    reductions: tuple[Reduction, ...]
    remedies: tuple[Remedy, ...]
    what_if: tuple[Figures, ...]
    notes: tuple[Text, ...]
    report: Report
    lang: str

    @property
    def suggestion(self) -> str:
        """What to do, in the language of the report."""
        return self.suggestions.get(self.lang)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys():
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def _keys(self) -> list[str]:
        own = [item.name for item in fields(self) if item.name not in ("report", "lang")]
        place = own.index("suggestions")
        return [*own[:place], "suggestion", *own[place:]]

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.report.findings

    def to(self, format: str, lang: str = "", **options: Any) -> str:
        return self.report.to(format, lang or self.lang, **options)

    def to_json(self, indent: int | None = 2) -> str:
        return self.report.to_json(indent)

    def __str__(self) -> str:
        return self.to("text")

    def __repr__(self) -> str:
        return (
            f"TensorReport(name={self.name!r}, shape={self.shape}, dim_ratio={self.dim_ratio:.4g}, "
            f"risk_level={self.risk_level!r}, suggestion={self.suggestion!r})"
        )

    def _repr_html_(self) -> str:
        return self.report._repr_html_()

    def __hash__(self) -> int:
        return id(self)
