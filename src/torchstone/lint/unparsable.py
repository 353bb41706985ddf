"""Why a file could not be parsed, as a finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from torchstone.core.evidence import Command
from torchstone.core.finding import Finding, fingerprint
from torchstone.core.gap import Gap
from torchstone.core.text import Message, Text
from torchstone.lint.rules.unparsable_file import RULE

_REASONS = frozenset(
    {"source.syntax", "source.too-deep", "source.null-bytes", "source.encoding", "notebook.broken"}
)


def split_unparsable(gaps: Iterable[Gap], ignored: bool) -> tuple[list[Finding], list[Gap]]:
    """Files that Python cannot parse are findings; what else could not be read stays a gap.

    With the rule ignored they are gaps that leave the exit code alone.
    """
    findings: list[Finding] = []
    others: list[Gap] = []
    for gap in gaps:
        if gap.reason.id not in _REASONS:
            others.append(gap)
        elif ignored or _is_template(gap.location.path):
            others.append(replace(gap, failed=False))
        else:
            findings.append(_finding(gap))
    return findings, others


def _is_template(path: str) -> bool:
    """Whether a name is filled in before the file becomes Python, as by cookiecutter."""
    return "{{" in path or "{%" in path


def _finding(gap: Gap) -> Finding:
    say = Text(gap.reason.say("en"), gap.reason.say("zh"))
    where = replace(gap.location, line=max(gap.location.line, 1), column=1)
    return Finding(
        RULE.code, RULE.name, RULE.severity, RULE.confidence,
        Message(f"{RULE.code}.say", say), Message(f"{RULE.code}.why", RULE.why),
        Message(f"{RULE.code}.suggest", RULE.suggest, {"close": gap.close}),
        where, (Command(gap.close),), fingerprint(RULE.code, f"{where.path}:{where.cell}", gap.reason.id),
    )  # fmt: skip
