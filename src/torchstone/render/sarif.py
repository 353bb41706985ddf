"""SARIF 2.1.0, for code scanning services and editors, with fixes and fingerprints."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from torchstone._version import __version__
from torchstone.core.finding import Finding, Location, Severity
from torchstone.core.fix import Edit
from torchstone.core.gap import Gap
from torchstone.core.packages import documentation
from torchstone.core.report import Report, RuleInfo
from torchstone.render.style import Style

LEVELS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}
_RANKS = {"certain": 95.0, "likely": 75.0, "possible": 40.0}
_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def render(report: Report, style: Style) -> str:
    codes = sorted({item.rule for item in report.findings})
    home = documentation()
    order = {code: index for index, code in enumerate(codes)}
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "torchstone",
                "version": __version__,
                "semanticVersion": __version__,
                **({"informationUri": home} if home else {}),
                "language": "zh" if style.lang == "zh" else "en",
                "rules": [_rule(code, report.rules.get(code), style.lang, home) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.failed,
                "toolExecutionNotifications": [_notification(gap, style) for gap in report.gaps],
            }
        ],
        "results": [_result(item, order, style) for item in report.findings],
        "properties": {"environment": dict(report.environment)},
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, indent=2) + "\n"


def _rule(code: str, info: RuleInfo | None, lang: str, home: str) -> dict[str, Any]:
    if info is None:
        return {"id": code}
    out: dict[str, Any] = {
        "id": info.id,
        "name": "".join(part.capitalize() for part in info.name.split("-")),
        "shortDescription": {"text": info.summary.get(lang) or info.name},
        "defaultConfiguration": {"level": LEVELS[info.severity]},
        "properties": {"tags": [info.group], "problem.severity": LEVELS[info.severity]},
    }
    if info.why.get(lang):
        out["fullDescription"] = {"text": info.why.get(lang)}
        out["help"] = {"text": f"{info.why.get(lang)}\n{info.remedy.get(lang)}".strip()}
    if home and info.url.startswith("docs/"):
        page = PurePath(info.url).relative_to("docs").with_suffix(".html").as_posix()
        out["helpUri"] = f"{home}/{'zh/' if lang == 'zh' else ''}{page}"
    return out


def _result(item: Finding, order: dict[str, int], style: Style) -> dict[str, Any]:
    parts = (item.message(style.lang), item.why.say(style.lang), item.remedy.say(style.lang))
    result: dict[str, Any] = {
        "ruleId": item.rule,
        "ruleIndex": order[item.rule],
        "level": LEVELS[item.severity],
        "rank": _RANKS[item.confidence],
        "message": {"text": "\n".join(part for part in parts if part)},
        "locations": [_location(item.location)],
        "partialFingerprints": {"torchstone/v1": item.fingerprint},
        "properties": {
            "severity": item.severity.value,
            "confidence": item.confidence.value,
            "tool": item.tool,
        },
    }
    if item.fix and item.fix.edits:
        result["fixes"] = [
            {
                "description": {"text": item.remedy.say(style.lang) or item.message(style.lang)},
                "artifactChanges": _changes(item.fix.edits),
                "properties": {"safety": item.fix.safety.value},
            }
        ]
    return result


def _changes(edits: tuple[Edit, ...]) -> list[dict[str, Any]]:
    paths = dict.fromkeys(edit.path for edit in edits)
    return [
        {
            "artifactLocation": _artifact(path),
            "replacements": [_replacement(edit) for edit in edits if edit.path == path],
        }
        for path in paths
    ]


def _replacement(edit: Edit) -> dict[str, Any]:
    return {
        "deletedRegion": {
            "startLine": edit.line,
            "startColumn": edit.column + 1,
            "endLine": edit.end_line,
            "endColumn": edit.end_column + 1,
        },
        "insertedContent": {"text": edit.text},
    }


def _location(where: Location) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if where.path:
        physical: dict[str, Any] = {"artifactLocation": _artifact(where.path)}
        if where.line:
            physical["region"] = {
                "startLine": where.line,
                "startColumn": max(where.column, 1),
                "endLine": max(where.end_line, where.line),
                "endColumn": max(where.end_column, 1),
            }
        out["physicalLocation"] = physical
    names = [name for name in (where.scope, where.module, where.tensor, where.op) if name]
    if names:
        out["logicalLocations"] = [{"fullyQualifiedName": name} for name in names]
    extra = {"cell": where.cell or None, "step": where.step}
    if properties := {key: value for key, value in extra.items() if value is not None}:
        out["properties"] = properties
    return out


def _artifact(path: str) -> dict[str, str]:
    if Path(path).is_absolute():
        return {"uri": "file://" + quote(os.fsencode(Path(path).as_posix()))}
    return {"uri": quote(os.fsencode(PurePath(path).as_posix()))}


def _notification(gap: Gap, style: Style) -> dict[str, Any]:
    out: dict[str, Any] = {
        "level": "error" if gap.failed else "note",
        "message": {
            "text": f"{gap.subject}: {gap.reason.say(style.lang)} ({gap.say_close(style.lang)})"
        },
        "descriptor": {"id": gap.reason.id or "gap"},
    }
    if gap.location.path:
        out["locations"] = [_location(gap.location)]
    return out
