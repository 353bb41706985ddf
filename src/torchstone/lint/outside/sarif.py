"""Any tool's SARIF file as findings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from torchstone.core.errors import InputError
from torchstone.core.files import read_regular
from torchstone.core.finding import Finding, Location, Severity
from torchstone.core.report import Report
from torchstone.core.text import Text
from torchstone.lint.outside._finding import foreign, shown

NAME = "sarif"
_LEVELS = {"error": Severity.HIGH, "warning": Severity.MEDIUM, "note": Severity.LOW}


def read(path: Path) -> Report:
    """The results of a SARIF 2.1.0 file; anything else is an error, not an empty report."""
    try:
        data = json.loads(read_regular(path, 256 * 1024 * 1024))
        runs = data["runs"]
        if not isinstance(runs, list):
            raise TypeError("runs is no list")
        findings = tuple(f for run in runs for f in _run(run))
    except OSError as error:
        raise _wrong(path, error.strerror or type(error).__name__) from None
    except (ValueError, RecursionError, OverflowError):
        raise _wrong(path, "no JSON") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise _wrong(path, f"another document ({error})") from None
    return Report(NAME, findings)


def _wrong(path: Path, given: str) -> InputError:
    return InputError(
        f"--with {path}",
        given,
        Text("a SARIF 2.1.0 file", "SARIF 2.1.0 文件"),
        Text("write it with the tool's SARIF output", "请用该工具的 SARIF 输出生成"),
    )


def _run(run: dict[str, Any]) -> list[Finding]:
    driver = run["tool"]["driver"]
    tool = str(driver["name"]).lower().replace(" ", "-")
    levels = {
        rule["id"]: rule.get("defaultConfiguration", {}).get("level", "warning")
        for rule in driver.get("rules", [])
    }
    return [_result(tool, row, levels) for row in run.get("results") or []]


def _result(tool: str, row: dict[str, Any], levels: dict[str, str]) -> Finding:
    rule = str(row.get("ruleId") or "")
    level = row.get("level") or levels.get(rule, "warning")
    where = _location(row.get("locations") or [])
    prints = row.get("partialFingerprints") or row.get("fingerprints") or {}
    # our own file read back keeps its own identity, so that it merges without duplicates
    mark = str(prints.get("torchstone/v1", ""))
    message = str(row["message"].get("text") or row["message"].get("markdown") or rule)
    if tool == "torchstone":
        message = message.split("\n", 1)[0]
    found = foreign(tool, rule, _LEVELS.get(level, Severity.LOW), message, where, mark)
    if tool == "torchstone":
        return replace(found, rule=rule, name=rule)
    return found


def _location(rows: list[dict[str, Any]]) -> Location:
    if not rows:
        return Location()
    physical = rows[0].get("physicalLocation") or {}
    uri = str((physical.get("artifactLocation") or {}).get("uri") or "")
    parsed = urlparse(uri)
    path = unquote(parsed.path if parsed.scheme == "file" else uri)
    region = physical.get("region") or {}
    line = int(region.get("startLine") or 0)
    column = int(region.get("startColumn") or 1)
    return Location(
        shown(path),
        line,
        column,
        int(region.get("endLine") or line),
        int(region.get("endColumn") or column),
    )
