"""A finding: what is wrong, where, how sure we are, why, and how to fix it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from torchstone.core.evidence import Number
from torchstone.core.fix import Fix
from torchstone.core.text import Message

if TYPE_CHECKING:
    from torchstone.core.pictures import Evidence


class Severity(StrEnum):
    """How bad it is when it happens."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return _SEVERITIES.index(self)


class Confidence(StrEnum):
    """How sure we are that it happens."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"

    @property
    def rank(self) -> int:
        """0 is the surest."""
        return _CONFIDENCES.index(self)


_SEVERITIES = tuple(Severity)
_CONFIDENCES = tuple(Confidence)


@dataclass(frozen=True, slots=True)
class Location:
    """Where: lines and columns of a file (1-based lines and columns), or a place in a model."""

    path: str = ""
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    cell: int = 0
    """Notebook cell, counted from 1; 0 outside notebooks. Lines then count within the cell."""
    scope: str = ""
    """Dotted name of the enclosing classes and functions."""
    module: str = ""
    tensor: str = ""
    step: int | None = None
    op: str = ""

    def __str__(self) -> str:
        if self.path:
            place = self.path + (f":cell {self.cell}" if self.cell else "")
            return f"{place}:{self.line}:{self.column}" if self.line else place
        parts = (
            self.module,
            self.tensor,
            self.op,
            "" if self.step is None else f"step {self.step}",
        )
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem with its evidence."""

    rule: str
    name: str
    severity: Severity
    confidence: Confidence
    what: Message
    why: Message
    remedy: Message
    location: Location
    evidence: tuple[Evidence, ...]
    fingerprint: str
    fix: Fix | None = None
    gain: Number | None = None
    tool: str = "check"

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError(f"{self.rule} at {self.location}: a finding needs evidence")

    @property
    def path(self) -> str:
        return self.location.path

    @property
    def line(self) -> int:
        return self.location.line

    def message(self, lang: str = "en") -> str:
        return self.what.say(lang)

    @property
    def sort_key(self) -> tuple[str, int, int, int, str]:
        where = self.location
        return (where.path, where.cell, where.line or where.step or 0, where.column, self.rule)


def fingerprint(rule: str, scope: str, source: str, nth: int = 0) -> str:
    """An identity that survives moved lines: rule, enclosing scope and normalised source.

    `nth` tells apart equal findings of one scope, in their order.
    """
    normal = " ".join(source.split())
    basis = "\x1f".join((rule, scope, normal, str(nth)))
    return hashlib.sha256(basis.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: finding.sort_key))
