"""ruff's diagnostics as findings, fixes included."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from torchstone.core.finding import Finding, Location, Severity
from torchstone.core.fix import Edit, Fix, Safety
from torchstone.core.gap import Gap
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.lint.outside import _process
from torchstone.lint.outside._finding import foreign, shown

NAME = "ruff"
_SAFETY = {"safe": Safety.SAFE, "unsafe": Safety.UNSAFE}


def run(paths: list[str], allow_plugins: bool = False) -> Report:  # noqa: ARG001 - ruff has none
    program = _process.program(NAME)
    if program is None:
        return Report(NAME, gaps=(_process.missing(NAME),))
    command = [*program, "check", "--output-format=json", "--no-cache", "--", *paths]
    code, out, err = _process.run(command)
    findings: list[Finding] = []
    gaps: list[Gap] = []
    try:
        rows = json.loads(out or "[]")
        findings = [found for row in rows if (found := _read(row)) is not None]
    except (ValueError, TypeError):
        gaps.append(_process.failed(NAME, "its answer is no JSON", f"ruff check {' '.join(paths)}"))
    if code not in (0, 1):
        why = (err.strip() or f"exit {code}").splitlines()[-1]
        gaps.append(_process.failed(NAME, why, f"ruff check {' '.join(paths)}"))
    return Report(NAME, tuple(findings), gaps=tuple(gaps))


def _read(row: dict[str, Any]) -> Finding | None:
    try:
        start, end = row["location"], row["end_location"]
        path, cell = shown(row["filename"]), row.get("cell") or 0
        where = Location(path, start["row"], start["column"], end["row"], end["column"], cell)
        found = foreign(NAME, row.get("code") or "syntax", Severity.LOW, str(row["message"]), where)
        fix = row.get("fix")
        return replace(found, fix=_fix(fix, path, cell)) if fix else found
    except (KeyError, TypeError):
        return None


def _fix(fix: dict[str, Any], path: str, cell: int) -> Fix:
    edits = tuple(
        Edit(
            path, edit["location"]["row"], edit["location"]["column"] - 1,
            edit["end_location"]["row"], edit["end_location"]["column"] - 1, edit["content"], cell,
        )
        for edit in fix["edits"]
    )  # fmt: skip
    text = str(fix.get("message") or "")
    return Fix(
        edits,
        _SAFETY.get(fix.get("applicability", ""), Safety.SHOW),
        Message("ruff.fix", Text(text, text)),
    )
