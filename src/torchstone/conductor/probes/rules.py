"""What a probe is called, how bad its finding is, and how a finding is made of what it saw."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchstone.core.evidence import Number, Snippet
from torchstone.core.finding import Confidence, Finding, Location, Severity, fingerprint
from torchstone.core.fix import Fix
from torchstone.core.pictures import Evidence
from torchstone.core.place import Place
from torchstone.core.report import RuleInfo
from torchstone.core.text import Message, Text

TOOL = "probes"
_AROUND = 2
"""Lines of source shown before and after the one that matters."""


@dataclass(frozen=True, slots=True)
class ProbeRule:
    """One property that must hold."""

    id: str
    name: str
    severity: Severity
    effect: str
    """What happens when nobody fixes it, in the words of the review's priorities."""
    summary: Text
    why: Text
    remedy: Text

    def info(self) -> RuleInfo:
        return RuleInfo(
            self.id, self.name, self.effect, self.severity, self.summary, self.why, self.remedy
        )


@dataclass(frozen=True, slots=True)
class Shown:
    """A property that does not hold, the line that shows it, and edits that may repair it."""

    rule: ProbeRule
    place: Place
    what: Text
    args: Mapping[str, str] = field(default_factory=dict)
    numbers: tuple[Number, ...] = ()
    fixes: tuple[Fix, ...] = ()
    severity: Severity | None = None
    """Where it differs from the rule's."""
    gain: Number | None = None
    """What a repair brings; without one, what `numbers` say of bits, or of measured and expected."""


def number(en: str, zh: str, value: float, unit: str, how: Text) -> Number:
    return Number(Text(en, zh), value, unit, how)


_EXPECTED = Text("expected", "应为")
_BITS = Text("significant bits", "有效位")
_FLOAT32_BITS = 24


def expected(value: float, unit: str, how: Text) -> Number:
    """What the number before it should be."""
    return Number(_EXPECTED, value, unit, how)


def significant_bits(bits: int, how: Text) -> Number:
    """Bits of the format that a value is held in."""
    return Number(_BITS, bits, "bit", how)


def _gain(numbers: tuple[Number, ...]) -> Number | None:
    """The digits that float32 would keep, or the distance between measured and expected."""
    for first, second in itertools.pairwise(numbers):
        if second.name == _EXPECTED and first.unit == second.unit:
            return Number(Text("error removed", "消除的误差"), abs(first.value - second.value),
                          first.unit, first.how)  # fmt: skip
    for item in numbers:
        if item.name == _BITS and item.value < _FLOAT32_BITS:
            return Number(Text("digits gained in float32", "float32 多保留的位数"),
                          (_FLOAT32_BITS - item.value) * math.log10(2), "digits", item.how)  # fmt: skip
    return None


def finding_of(shown: Shown, root: Path, command: str, nth: int = 0) -> Finding:
    """The finding, with the source line and a command that shows it again."""
    rule, place = shown.rule, shown.place
    lines = _lines(root / place.path)
    source = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    proof: tuple[Evidence, ...] = (*shown.numbers, *_snippet(place, lines))
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=shown.severity or rule.severity,
        confidence=Confidence.CERTAIN,
        what=Message(rule.name, shown.what, dict(shown.args)),
        why=Message(f"{rule.name}-why", rule.why),
        remedy=Message(f"{rule.name}-remedy", rule.remedy),
        location=Location(place.path, place.line, 1, scope=place.scope),
        evidence=proof,
        fingerprint=fingerprint(rule.id, place.scope, source, nth),
        fix=_proved(shown.fixes[0], command) if shown.fixes else None,
        tool=TOOL,
        gain=shown.gain or _gain(shown.numbers),
    )


def _proved(fix: Fix, command: str) -> Fix:
    return Fix(fix.edits, fix.safety, fix.says, fix.proof or command)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def _snippet(place: Place, lines: list[str]) -> tuple[Snippet, ...]:
    if not 0 < place.line <= len(lines):
        return ()
    first = max(1, place.line - _AROUND)
    shown = "\n".join(lines[first - 1 : place.line + _AROUND])
    line = lines[place.line - 1]
    start = len(line) - len(line.lstrip())
    return (Snippet(place.path, first, shown, place.line, start, len(line)),)
