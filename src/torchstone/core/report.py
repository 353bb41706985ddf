"""A report: findings, measures, gaps and the environment; reports add and subtract."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from torchstone._version import __version__
from torchstone.core.codec import from_data, schema_of, to_data
from torchstone.core.errors import InputError
from torchstone.core.finding import Finding, Severity, in_order
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.text import NOTHING, Text

if TYPE_CHECKING:
    from torchstone.core.answer import Answer

SCHEMA = "torchstone/report/1"


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """What a reader needs to know of a rule without loading it."""

    id: str
    name: str
    group: str
    severity: Severity
    summary: Text
    why: Text = NOTHING
    remedy: Text = NOTHING
    url: str = ""


@dataclass(frozen=True)
class Report:
    """What a tool hands out. `a + b` merges; `a - b` is what `a` has and `b` has not."""

    tool: str
    findings: tuple[Finding, ...] = ()
    measures: tuple[Measure, ...] = ()
    gaps: tuple[Gap, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, RuleInfo] = field(default_factory=dict)
    subject: str = ""
    answer: Answer | None = None
    """The first screen; without one, findings and measures stand for themselves."""
    command: str = ""
    """The command that made it, where one did."""
    date: str = ""

    def __add__(self, other: Report) -> Report:
        seen = {_identity(finding) for finding in self.findings}
        extra = (finding for finding in other.findings if _identity(finding) not in seen)
        return replace(
            self,
            tool=self.tool if self.tool == other.tool else f"{self.tool}+{other.tool}",
            findings=in_order((*self.findings, *extra)),
            measures=_union(self.measures, other.measures),
            gaps=_union(self.gaps, other.gaps),
            environment={**other.environment, **self.environment},
            rules={**other.rules, **self.rules},
            subject=self.subject or other.subject,
            answer=self.answer or other.answer,
            command=self.command or other.command,
            date=self.date or other.date,
        )

    def __sub__(self, other: Report) -> Report:
        """What is new: findings (by fingerprint), measures and gaps that `other` does not have."""
        known = Counter(finding.fingerprint for finding in other.findings)
        fresh: list[Finding] = []
        for finding in self.findings:
            if known[finding.fingerprint]:
                known[finding.fingerprint] -= 1
            else:
                fresh.append(finding)
        return replace(
            self,
            findings=tuple(fresh),
            measures=tuple(item for item in self.measures if item not in other.measures),
            gaps=tuple(item for item in self.gaps if item not in other.gaps),
        )

    def __bool__(self) -> bool:
        return bool(self.findings or self.measures or self.gaps)

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        return tuple(item for item in self.findings if item.severity.rank <= severity.rank)

    @property
    def failed(self) -> bool:
        """Part of the work that was started failed."""
        return any(gap.failed for gap in self.gaps)

    def to_data(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "version": __version__,
            "tool": self.tool,
            "subject": self.subject,
            **({"answer": to_data(self.answer)} if self.answer else {}),
            **({"command": self.command} if self.command else {}),
            **({"date": self.date} if self.date else {}),
            "environment": dict(self.environment),
            "findings": [_finding_data(item) for item in self.findings],
            "measures": [to_data(item) for item in self.measures],
            "gaps": [to_data(item) for item in self.gaps],
            "rules": {key: to_data(item) for key, item in sorted(self.rules.items())},
        }

    def to_json(self, indent: int | None = 2) -> str:
        return json.dumps(self.to_data(), ensure_ascii=False, indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "report") -> Report:
        todo = Text("pass a file that torchstone wrote", "请传入由 torchstone 生成的文件")
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(where, f"no JSON ({error})", "a torchstone report", todo) from None
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            given = data.get("schema") if isinstance(data, dict) else type(data).__name__
            raise InputError(where, f"schema {given!r}", f"schema {SCHEMA!r}", todo)
        return from_data(cls, {k: v for k, v in data.items() if k != "schema"}, where)

    def to(self, format: str, lang: str = "en", **options: Any) -> str:
        """This report in one of the output formats (text, json, sarif, html, …)."""
        text: str = _renderer()(self, format, lang=lang, **options)
        return text

    def __str__(self) -> str:
        return self.to("text")

    def __repr__(self) -> str:
        """Three lines: what it is about, what was found, where to look further."""
        found = Counter(item.severity for item in self.findings)
        listed = ", ".join(f"{found[level]} {level}" for level in Severity if found[level])
        parts = (f"{len(self.measures)} measures", f"{len(self.gaps)} gaps")
        head = self.answer.headline.en if self.answer else listed or "no findings"
        return (
            f"<Report of {self.tool}: {self.subject or '(no subject)'}>\n  {head}\n"
            f"  {len(self.findings)} findings, {', '.join(parts)}; print(report), report.to('html')"
        )

    def _repr_html_(self) -> str:
        """In a notebook: the page itself, in a frame of its own."""
        page = self.to("html").replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{page}" style="width:100%;height:640px;border:0"></iframe>'


def _finding_data(item: Finding) -> dict[str, Any]:
    """A finding with what scripts ask for most within easy reach."""
    handy = {"path": item.path, "line": item.line, "message": item.message("en")}
    return {**to_data(item), **handy}


def _renderer() -> Any:
    # core stands below render; the renderer is imported by name when it is asked for
    import importlib

    return importlib.import_module("torchstone.render").render


def _identity(finding: Finding) -> tuple[str, str, int, str]:
    return (finding.fingerprint, finding.path, finding.line, finding.rule)


def _union(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*ours, *(item for item in theirs if item not in ours))


def merge(reports: Iterable[Report], tool: str) -> Report:
    """One report out of many."""
    return functools.reduce(lambda a, b: replace(a + b, tool=tool), reports, Report(tool))


def report_schema() -> dict[str, Any]:
    """The published JSON schema of a report."""
    schema = schema_of(Report)
    schema["properties"] = {
        "schema": {"const": SCHEMA},
        "version": {"type": "string"},
        **schema["properties"],
    }
    for name, kind in (("path", "string"), ("line", "integer"), ("message", "string")):
        schema["$defs"]["Finding"]["properties"][name] = {"type": kind}
    schema["required"] = [
        "schema", "version", "tool", "environment", "findings", "measures", "gaps",
    ]  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA,
        "title": "Torchstone report",
        **schema,
    }
