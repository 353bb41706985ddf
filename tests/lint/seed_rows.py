"""A small program for a row of the first list of checks, and how it is judged."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from torchstone.core.report import Report
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions


class Program(NamedTuple):
    """A program of one or more files, and the level at which one rule reports it."""

    what: str
    rule: str
    level: str
    """HIGH or MEDIUM; "" for a harmless case, which `--strict` alone reports."""
    files: dict[str, str]


def program(what: str, rule: str, level: str, main: str, **others: str) -> Program:
    files = {"main.py": main} | {f"{name}.py": text for name, text in others.items()}
    return Program(what, rule, level, files)


def run(item: Program, folder: Path, strict: bool = False) -> Report:
    for name, text in item.files.items():
        (folder / name).write_text(text)
    report = check(CheckOptions(paths=(str(folder),), no_cache=True, torch="latest", strict=strict))
    assert not report.gaps, [gap.reason.say() for gap in report.gaps]
    return report


def levels(item: Program, folder: Path, strict: bool = False) -> set[str]:
    """The levels at which the program's rule reports something in it."""
    found = run(item, folder, strict).findings
    return {finding.severity.name for finding in found if finding.rule == item.rule}
