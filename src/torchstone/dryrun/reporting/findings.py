"""How a finding of a dry run is made: rule, words, place, and the lines around it."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

from torchstone._version import __version__
from torchstone.core.evidence import Snippet
from torchstone.core.finding import Confidence, Finding, Location, fingerprint
from torchstone.core.pictures import Evidence
from torchstone.core.place import Place
from torchstone.core.text import Message, Text
from torchstone.dryrun.rules import Rule
from torchstone.starting.documents import python_of

TOOL = "dryrun"
ENVIRONMENT = {
    "torchstone": __version__,
    "torch": version("torch"),
    "python": platform.python_version(),
}
_AROUND = 2
"""Lines of source shown before and after the one that matters."""


def make_finding(
    rule: Rule,
    what: Text,
    args: dict[str, str],
    why: Text,
    remedy: Message,
    place: Place,
    evidence: tuple[Evidence, ...],
    module: str = "",
    op: str = "",
    confidence: Confidence = Confidence.CERTAIN,
) -> Finding:
    return Finding(
        rule=rule.id,
        name=rule.name,
        severity=rule.severity,
        confidence=confidence,
        what=Message(rule.name, what, args),
        why=Message(f"{rule.name}-why", why),
        remedy=remedy,
        location=Location(place.path, place.line, 1, scope=place.scope, module=module, op=op),
        evidence=evidence,
        fingerprint=fingerprint(rule.id, place.scope, source_line(place)),
        tool=TOOL,
    )


def source_line(place: Place) -> str:
    try:
        return _lines_of(place.path)[place.line - 1]
    except (OSError, IndexError):
        return ""


def _lines_of(path: str) -> list[str]:
    """Of a notebook, the lines of its code cells one after the other: they are what was run."""
    text = Path(path).read_text("utf-8", "replace")
    return (python_of(path, text) if path.endswith(".ipynb") else text).splitlines()


def snippet_at(place: Place, caption: Text | str = "") -> Snippet | None:
    """The line with its neighbours, when the file can be read."""
    try:
        lines = _lines_of(place.path)
    except OSError:
        return None
    if not 0 < place.line <= len(lines):
        return None
    first = max(1, place.line - _AROUND)
    shown = lines[first - 1 : place.line + _AROUND]
    line = lines[place.line - 1]
    start = len(line) - len(line.lstrip())
    return Snippet(place.path, first, "\n".join(shown), place.line, start, len(line), caption)
