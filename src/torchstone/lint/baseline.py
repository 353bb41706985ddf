"""Findings that were there before: a file of fingerprints that travels with the project."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.core.files import read_regular, write_atomically
from torchstone.core.finding import Finding, Severity
from torchstone.core.text import Text

SCHEMA = "torchstone/baseline/2"
_WITHOUT_LEVELS = "torchstone/baseline/1"


def write(findings: Iterable[Finding], path: Path) -> None:
    """One line a finding, so that a merge of two branches merges their baselines."""
    rows = sorted(
        (
            item.path,
            item.rule,
            item.fingerprint,
            item.severity.name,
            " ".join(item.message("en").split()),
        )
        for item in findings
    )
    lines = ",\n".join("  " + json.dumps(list(row), ensure_ascii=False) for row in rows)
    write_atomically(path, f'{{"schema": "{SCHEMA}", "findings": [\n{lines}\n]}}\n')


def without_known(findings: list[Finding], path: Path) -> list[Finding]:
    """The findings that the baseline does not have, or has at a lower level."""
    known: dict[str, list[Severity]] = defaultdict(list)
    for mark, severity in _read(path):
        known[mark].append(severity)
    fresh: list[Finding] = []
    for finding in findings:
        levels = known[finding.fingerprint]
        hidden = next((level for level in levels if level.rank <= finding.severity.rank), None)
        if hidden is None:
            fresh.append(finding)
        else:
            levels.remove(hidden)
    return fresh


def _read(path: Path) -> list[tuple[str, Severity]]:
    """The fingerprints with their levels; a file from before levels were kept hides every level."""

    def wrong(given: str) -> InputError:
        return InputError(
            f"--baseline {path}",
            given,
            Text(f"a baseline file ({SCHEMA})", f"基线文件（{SCHEMA}）"),
            Text(
                f"make one with `torchstone check --write-baseline {path}`",
                f"请用 `torchstone check --write-baseline {path}` 生成",
            ),
        )

    try:
        data = json.loads(read_regular(path, 256 * 1024 * 1024))
    except OSError as error:
        raise wrong(error.strerror or type(error).__name__) from None
    except (ValueError, RecursionError):
        raise wrong("no JSON") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema not in (SCHEMA, _WITHOUT_LEVELS):
        raise wrong("another document")
    rows, width = data.get("findings"), 5 if schema == SCHEMA else 4
    if not isinstance(rows, list) or not all(
        isinstance(row, list) and len(row) == width and all(isinstance(part, str) for part in row)
        for row in rows
    ):
        raise wrong("rows of another shape")
    if schema == _WITHOUT_LEVELS:
        return [(row[2], Severity.HIGH) for row in rows]
    if any(row[3] not in Severity.__members__ for row in rows):
        raise wrong("a level that does not exist")
    return [(row[2], Severity[row[3]]) for row in rows]
