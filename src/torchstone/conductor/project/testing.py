"""The project's own tests: what passes, what fails, told apart test by test."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torchstone.conductor.project.copying import Copy
from torchstone.conductor.records.cache import keep, key_of_tests, load
from torchstone.core.files import read_regular
from torchstone.sandbox.run import Call, run_confined

TestState = Literal["ran", "none", "late", "broken"]
_SECONDS = 180.0
_MOST_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class TestRun:
    """One run of the tests."""

    __test__ = False
    state: TestState
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    seconds: float = 0.0
    log: str = ""

    def worse_than(self, before: TestRun) -> tuple[str, ...]:
        """Tests that passed before and do not pass now."""
        return tuple(sorted(set(before.passed) - set(self.passed)))


def run_tests(copy: Copy, files: tuple[str, ...], use_cache: bool) -> TestRun:
    """pytest on the test files, behind walls; from the cache where the same tree was tested."""
    if not files:
        return TestRun("none")
    key = key_of_tests(copy.digest, files)
    known = load(key, TestRun) if use_cache else None
    if known is not None:
        return known
    made = _run(copy, files)
    if use_cache and made.state == "ran":
        keep(key, made)
    return made


def _run(copy: Copy, files: tuple[str, ...], seconds: float = _SECONDS) -> TestRun:
    """Plugins of this machine stay out."""
    result = copy.home / "tests.xml"
    done = run_confined(
        Call("torchstone.conductor.project.testing:run_pytest", ("-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         "-p", "no:randomly", "--no-header", "--tb=line", f"--junitxml={result}", *files), ("torch", "pytest")),
        copy.home, start=copy.project, seconds=seconds, readable=(copy.original,),
        environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(copy.project)},
    )  # fmt: skip
    log = done.output[-4000:].replace(f"{copy.project}/", "")
    if done.late:
        return TestRun("late", seconds=done.seconds, log=log)
    read = _read(result)
    if read is None:
        return TestRun("broken", seconds=done.seconds, log=log)
    return TestRun("ran", *read, done.seconds, log)


def run_pytest(words: list[str]) -> None:
    """In the sandbox, with torch loaded."""
    import pytest

    raise SystemExit(pytest.main(words))


def _read(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Names of passed and failed tests; None where there is no such file."""
    try:
        if path.is_symlink():
            return None
        text = read_regular(path, _MOST_BYTES).decode("utf-8", "replace")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            return None  # pytest writes none; an entity can grow without end
        root = ET.fromstring(text)
    except (OSError, ET.ParseError):
        return None
    passed: list[str] = []
    failed: list[str] = []
    for case in root.iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif case.find("skipped") is None:
            passed.append(name)
    return tuple(passed), tuple(failed)
