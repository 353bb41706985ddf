"""How findings are grouped for a reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from torchstone.core.finding import Finding, Severity
from torchstone.core.report import Report


def by_file(report: Report) -> list[tuple[str, list[Finding]]]:
    """Findings of each file (or other subject) together, in the report's order."""
    ordered = sorted(report.findings, key=lambda item: item.sort_key)
    return [(path, list(group)) for path, group in groupby(ordered, key=lambda item: item.path)]


def worst_file_first(report: Report) -> list[tuple[str, list[Finding]]]:
    """The same with the files that have most of the worst findings first."""

    return sorted(by_file(report), key=lambda group: weight(group[1]))


def weight(findings: Iterable[Finding]) -> tuple[int, ...]:
    """Sorts what has more of the worst findings first."""
    levels = [item.severity for item in findings]
    return tuple(-levels.count(level) for level in Severity)


def counts(report: Report) -> dict[Severity, int]:
    """How many findings there are of each severity, the worst first."""
    found = Counter(item.severity for item in report.findings)
    return {severity: found[severity] for severity in Severity}


def worst_first(findings: tuple[Finding, ...]) -> list[Finding]:
    """What deserves attention first: by severity, then certainty, then gain."""
    return sorted(
        findings,
        key=lambda item: (
            item.severity.rank,
            item.confidence.rank,
            -(item.gain.value if item.gain else 0.0),
            item.sort_key,
        ),
    )
