"""Findings that were there before: a file of fingerprints that travels with the project."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.core.files import read_regular, write_atomically
from torchstone.core.finding import Finding
from torchstone.core.text import Text

SCHEMA = "torchstone/baseline/1"


def write(findings: Iterable[Finding], path: Path) -> None:
    """One line a finding, so that a merge of two branches merges their baselines."""
    rows = sorted(
        (item.path, item.rule, item.fingerprint, " ".join(item.message("en").split()))
        for item in findings
    )
    lines = ",\n".join("  " + json.dumps(list(row), ensure_ascii=False) for row in rows)
    write_atomically(path, f'{{"schema": "{SCHEMA}", "findings": [\n{lines}\n]}}\n')


def without_known(findings: list[Finding], path: Path) -> list[Finding]:
    """The findings that the baseline does not have."""
    known = Counter(_read(path))
    fresh: list[Finding] = []
    for finding in findings:
        if known[finding.fingerprint]:
            known[finding.fingerprint] -= 1
        else:
            fresh.append(finding)
    return fresh


def _read(path: Path) -> list[str]:
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
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise wrong("another document")
    rows = data.get("findings")
    if not isinstance(rows, list) or not all(
        isinstance(row, list) and len(row) == 4 and isinstance(row[2], str) for row in rows
    ):
        raise wrong("rows of another shape")
    return [row[2] for row in rows]
