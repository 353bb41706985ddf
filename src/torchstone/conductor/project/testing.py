"""The project's own tests: what passes, what fails, what could not be run, test by test."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torchstone.core.files import read_regular

TestState = Literal["ran", "none", "late", "broken"]
CaseState = Literal["passed", "failed", "not run"]
_MOST_BYTES = 32 << 20
_LAST_LINE = re.compile(r"^(?P<path>[^\s:]+\.py):(?P<line>\d+): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TestRun:
    """One run of the tests."""

    __test__ = False
    state: TestState
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    """Tests that could not be imported or set up: nothing is known of them."""

    def worse_than(self, before: TestRun) -> tuple[str, ...]:
        """Tests that passed before and do not pass now."""
        return tuple(sorted(set(before.passed) - set(self.passed)))


@dataclass(frozen=True, slots=True)
class TestCase:
    """One test."""

    __test__ = False
    name: str
    state: CaseState
    said: str = ""
    path: str = ""
    line: int = 0
    """Where it failed."""


def read_cases(path: Path, root: Path) -> tuple[TestCase, ...] | None:
    """What pytest wrote down; None where there is no such file."""
    try:
        if path.is_symlink():
            return None
        text = read_regular(path, _MOST_BYTES).decode("utf-8", "replace")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            return None  # pytest writes none; an entity can grow without end
        tree = ET.fromstring(text)
    except (OSError, ET.ParseError):
        return None
    return tuple(_cases(tree, root))


def _cases(tree: ET.Element, root: Path) -> Iterator[TestCase]:
    for case in tree.iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        failure, error = case.find("failure"), case.find("error")
        if failure is not None:
            text = f"{failure.get('message', '')}\n{failure.text or ''}"
            text_here = (failure.text or "").replace(f"{root}/", "")
            places = [item for item in _LAST_LINE.finditer(text_here) if item["path"][0] != "/"]
            where = places[-1] if places else None  # the innermost line of the project
            yield TestCase(
                name, "failed", text.strip().splitlines()[0][:300] if text.strip() else "",
                where["path"] if where else "", int(where["line"]) if where else 0,
            )  # fmt: skip
        elif error is not None:
            rows = [row for row in (error.text or "").splitlines() if row.startswith("E  ")]
            said = rows[-1][1:].strip() if rows else error.get("message") or ""
            yield TestCase(name, "not run", said[:300])
        elif case.find("skipped") is None:
            yield TestCase(name, "passed")
