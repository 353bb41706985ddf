"""What one file gave."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchstone.core.finding import Finding
from torchstone.core.gap import Gap


@dataclass
class Result:
    """Findings and gaps of one file, and how far other files had a say in them."""

    findings: list[Finding] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    lines: int = 0
    shared: bool = False
    """Whether other files of the project had a say."""
    missing: frozenset[str] = frozenset()
    """Module names that the file imports and the project does not have."""
