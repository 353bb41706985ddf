"""How many planted faults `check` finds, and how often it cries on clean code.

Each folder here is one case: `bad` holds exactly one fault, marked `# FAULT: rule-name` on the
line a reader would point at, and `good` is its mended twin. A case is a file or a small tree.
Half of the cases, chosen by the hash of the folder's name, were looked at while rules were written
(tuning). The other half (held-out) was measured once, blind: docs/precision.md has that figure. Its
misses were mended since, so that a new blind figure needs new cases.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from contextlib import chdir
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

from torchstone.core.finding import Finding, Severity
from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions

FOLDER = Path(__file__).parent
GROUPS = ("precision", "correctness", "performance", "distributed", "upgrade")
HALVES = ("tuning", "held-out")
_MARK = re.compile(r" *# FAULT: (\S+)")
_NEAR_LINES = 1
_SCRIPT = "train.py"


class Outcome(StrEnum):
    """What became of a planted fault."""

    FOUND = "found"
    OTHER_RULE = "other rule"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class Fault:
    """The place that should be named, and the rule that should name it."""

    path: str
    line: int
    rule: str

    def is_at(self, finding: Finding) -> bool:
        first, last = finding.location.line, max(finding.location.end_line, finding.location.line)
        return finding.path == self.path and first - _NEAR_LINES <= self.line <= last + _NEAR_LINES


@dataclass(frozen=True, slots=True)
class Result:
    """One case after both of its sides have been checked."""

    name: str
    fault: Fault
    outcome: Outcome
    others: tuple[Finding, ...]
    """Findings on the bad side that are not the planted fault."""
    alarms: tuple[Finding, ...]
    """Findings on the clean side."""

    @property
    def group(self) -> str:
        return self.name.split("_", 1)[0]

    @property
    def half(self) -> str:
        return half_of(self.name)


def half_of(name: str) -> str:
    """The half a case belongs to: it cannot be chosen by whoever adds the case."""
    return HALVES[int(hashlib.sha256(name.encode()).hexdigest()[0], 16) % 2]


def cases() -> list[Path]:
    """The folders that hold a case."""
    return sorted(path for path in FOLDER.iterdir() if path.name.split("_", 1)[0] in GROUPS)


def measure_all() -> list[Result]:
    """Check every case, both sides."""
    return [measure(folder) for folder in cases()]


def measure(folder: Path) -> Result:
    """Check one case, both sides."""
    fault = fault_in(_side(folder, "bad"))
    findings = _findings(_side(folder, "bad"))
    right = [item for item in findings if _is_rule(item, fault.rule) and fault.is_at(item)]
    if right:
        outcome = Outcome.FOUND
    elif any(fault.is_at(item) for item in findings):
        outcome = Outcome.OTHER_RULE
    else:
        outcome = Outcome.MISSED
    others = tuple(item for item in findings if item not in right)
    return Result(folder.name, fault, outcome, others, _findings(_side(folder, "good")))


def fault_in(side: Path) -> Fault:
    """The one mark in a file or tree."""
    marks = [
        Fault(name, number, found.group(1))
        for name, path in _files(side).items()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (found := _MARK.search(line))
    ]
    if len(marks) != 1:
        raise ValueError(f"{side}: {len(marks)} FAULT marks, expected exactly one")
    return marks[0]


def recall(results: list[Result]) -> float:
    """The share of faults found by the rule that was expected."""
    return sum(r.outcome is Outcome.FOUND for r in results) / len(results) if results else 1.0


def alarms(results: list[Result]) -> Counter[Severity]:
    """Findings on clean twins, by severity."""
    return Counter(item.severity for result in results for item in result.alarms)


def _side(folder: Path, kind: str) -> Path:
    single = folder / f"{kind}.py"
    return single if single.exists() else folder / kind


def _files(side: Path) -> dict[str, Path]:
    """The files of one side, by the name they are checked under."""
    if side.is_file():
        return {_SCRIPT: side}
    return {path.relative_to(side).as_posix(): path for path in sorted(side.rglob("*.py"))}


def _findings(side: Path) -> tuple[Finding, ...]:
    """What `check` says of a copy without marks.

    Names can make rules lenient: a folder called tests or performance, the word double in a mark.
    """
    with TemporaryDirectory() as place, chdir(place):
        for name, path in _files(side).items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(_MARK.sub("", path.read_text("utf-8")), "utf-8")
        return check(CheckOptions(paths=tuple(_files(side)), no_cache=True)).findings


def _is_rule(finding: Finding, rule: str) -> bool:
    return rule in (finding.rule, finding.name)


def _table(results: list[Result]) -> list[str]:
    head = (
        "group",
        "half",
        "faults",
        *Outcome,
        "other findings",
        *(f"alarms {s}" for s in Severity),
    )
    rows = [head]
    for group in (*GROUPS, "all"):
        for half in HALVES:
            part = [r for r in results if r.half == half and group in (r.group, "all")]
            outcomes, cries = Counter(r.outcome for r in part), alarms(part)
            counts = (
                len(part),
                *(outcomes[kind] for kind in Outcome),
                sum(len(r.others) for r in part),
                *(cries[severity] for severity in Severity),
            )
            rows.append((group, half, *map(str, counts)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]


def _lines(results: list[Result], verbose: bool) -> list[str]:
    lines = ["", "not found by the expected rule:"]
    for result in results:
        if result.outcome is not Outcome.FOUND:
            fault = f"{result.fault.rule} ({_place(result, 'bad', result.fault)})"
            lines.append(f"  {result.outcome:10}  {result.half:8}  {fault}")
            lines += (f"      saw {_short(result, 'bad', item)}" for item in result.others)
    lines += ["", "findings on clean twins:"]
    lines += (f"  {r.half:8}  {_short(r, 'good', a)}" for r in results for a in r.alarms)
    if verbose:
        lines += ["", "other findings on bad files:"]
        lines += (f"  {r.half:8}  {_short(r, 'bad', o)}" for r in results for o in r.others)
    return lines


def _short(result: Result, kind: str, finding: Finding) -> str:
    place = _place(result, kind, finding)
    return f"{finding.severity:6}  {finding.rule} {finding.name} ({place})"


def _place(result: Result, kind: str, at: Finding | Fault) -> str:
    side = _side(FOLDER / result.name, kind)
    path = side if side.is_file() else side / at.path
    return f"{path.relative_to(FOLDER)}:{at.line}"


def main() -> None:
    """Print the table, what was not found and every alarm; `-v` lists the other findings too."""
    results = measure_all()
    text = [*_table(results), *_lines(results, "-v" in sys.argv[1:])]
    sys.stdout.write("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
