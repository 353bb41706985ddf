"""mypy's errors as findings."""

from __future__ import annotations

import json

from torchstone.core.finding import Finding, Location, Severity
from torchstone.core.gap import Gap
from torchstone.core.report import Report
from torchstone.lint.outside import _process
from torchstone.lint.outside._finding import foreign, shown

NAME = "mypy"


def run(paths: list[str]) -> Report:
    program = _process.program(NAME)
    if program is None:
        return Report(NAME, gaps=(_process.missing(NAME),))
    command = [
        *program,
        "--output=json",
        "--no-error-summary",
        "--hide-error-context",
        "--",
        *paths,
    ]
    code, out, err = _process.run(command)
    if code not in (0, 1) and "Duplicate module named" in out:
        # scripts of one name in several folders: told apart by where they lie
        code, out, err = _process.run(
            [*program, "--explicit-package-bases", *command[len(program) :]]
        )
    findings: list[Finding] = []
    gaps: list[Gap] = []
    for line in out.splitlines():
        found = _read(line)
        if found is not None:
            findings.append(found)
    if code not in (0, 1) or (code == 1 and not findings):
        gaps.append(_process.failed(NAME, _why(out, err, code), f"mypy {' '.join(paths)}"))
    return Report(NAME, tuple(findings), gaps=tuple(gaps))


def _why(out: str, err: str, code: int) -> str:
    """The last thing it said, without the form in which it said it."""
    last = (err.strip() or out.strip() or f"exit {code}").splitlines()[-1]
    try:
        return str(json.loads(last)["message"])
    except (ValueError, KeyError, TypeError):
        return last


def _read(line: str) -> Finding | None:
    try:
        row = json.loads(line)
        if row["severity"] == "note":
            return None
        where = Location(shown(row["file"]), int(row["line"]), max(int(row["column"]), 0) + 1)
        return foreign(NAME, row.get("code") or "", Severity.MEDIUM, str(row["message"]), where)
    except (ValueError, KeyError, TypeError):
        return None
