"""Faults that the driver sees by reading: each with a check, run at once; a check that failed to run may be corrected once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from torchstone.conductor.choices import Driver, Suggestion
from torchstone.conductor.experiments.checks.check import Check, make_check
from torchstone.conductor.phases.execute import ToolResult
from torchstone.core.errors import TorchstoneError
from torchstone.core.files import read_regular

_PAGE = 10_000
"""Characters of source in one question: a file of 250 lines fits."""
_MOST_PAGES = 6
_MOST_CHECKS = 12
Run = Callable[[Check], ToolResult]


def suggest_checks(
    driver: Driver, root: Path, files: tuple[str, ...], run: Run
) -> tuple[Check, ...]:
    """Checks whose runs showed a fault, in the order in which they were suggested."""
    kept: list[Check] = []
    for page in _pages(root, files):
        for item in driver.suggest(page, ""):
            if len(kept) >= _MOST_CHECKS:
                return tuple(kept)
            check = _tried(driver, root, page, item, run)
            if check is not None and check not in kept:
                kept.append(check)
    return tuple(kept)


def _tried(driver: Driver, root: Path, page: str, item: Suggestion, run: Run) -> Check | None:
    """The check if it shows its fault; what went wrong is sent back once, and the answer is tried."""
    check, said = _run(root, item, run)
    if check is not None or not said:
        return check
    again = driver.suggest(page, f"{item.path}:{item.line} {item.claim}\n{item.check}\n\n{said}")
    return _run(root, again[0], run)[0] if again else None


def _run(root: Path, item: Suggestion, run: Run) -> tuple[Check | None, str]:
    """The check where it is broken; otherwise why it could not decide, empty where it holds."""
    if not item.check:
        return None, ""  # an idea without a check is not taken from a model
    try:
        check = make_check(
            item.path, item.line, item.claim, item.severity, item.check, "model", root
        )
    except TorchstoneError as error:
        return None, error.say("en")
    report = run(check).report
    if report.findings:
        return check, ""
    return None, "; ".join(gap.reason.say("en") for gap in report.gaps)


def _pages(root: Path, files: tuple[str, ...]) -> Iterator[str]:
    """Numbered source, file by file, as data."""
    rows: list[str] = []
    size = pages = 0
    for path in files:
        text = read_regular(root / path, 1 << 20).decode("utf-8", "replace")
        numbered = "\n".join(f"{n} {line}" for n, line in enumerate(text.splitlines(), 1))
        page = f"file: {path}\n{numbered[:_PAGE]}\n"
        if rows and size + len(page) > _PAGE:
            yield "\n".join(rows)
            pages += 1
            if pages >= _MOST_PAGES:
                return
            rows, size = [], 0
        rows.append(page)
        size += len(page)
    if rows:
        yield "\n".join(rows)
