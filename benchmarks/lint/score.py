"""How often `check` is right, by stored verdicts, and how many real bug fixes it would have found.

    python -m benchmarks.lint.score findings FOLDER   # a folder of checkouts, named owner+name
    python -m benchmarks.lint.score fixes FOLDER      # a folder of git directories, likewise

Verdicts stand in `verdicts.tsv`, fixes in `fixes.tsv`. No code of these repositories is kept here.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions

HERE = Path(__file__).parent
_KEPT = (".py", "requirements.txt", "setup.py", "setup.cfg", "pyproject.toml", "environment.yml")


class Verdict(NamedTuple):
    """What a reader said of one finding."""

    set: str
    repository: str
    commit: str
    file: str
    line: int
    rule: str
    severity: str
    confidence: str
    verdict: str
    cause: str


class Fix(NamedTuple):
    """A commit that fixed a bug, and the rules that should have said so."""

    set: str
    repository: str
    commit: str
    file: str
    rules: tuple[str, ...]
    mechanism: str


def rows(name: str) -> Iterator[dict[str, str]]:
    with (HERE / name).open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file, delimiter="\t")


def verdicts() -> list[Verdict]:
    return [Verdict(**{**row, "line": int(row["line"])}) for row in rows("verdicts.tsv")]  # type: ignore[arg-type]


def fixes() -> list[Fix]:
    return [Fix(**{**row, "rules": tuple(row["rules"].split(","))}) for row in rows("fixes.tsv")]  # type: ignore[arg-type]


def score_findings(folder: Path) -> None:
    """Present findings against the verdicts, by pair of repository and rule."""
    known = {(v.repository, v.file, v.line, v.rule): v for v in verdicts()}
    pairs: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for home in sorted(path for path in folder.iterdir() if path.is_dir()):
        repository = home.name.replace("+", "/", 1)
        report = check(CheckOptions(paths=(str(home),), no_cache=True))
        for item in report.findings:
            if item.severity.value == "LOW":
                continue
            file = Path(item.path).resolve().relative_to(home.resolve()).as_posix()
            found = known.get((repository, file, item.location.line, item.rule))
            said = found.verdict if found else "not read"
            pairs[item.severity.value, repository, item.rule].append(said)
            if found is None or said != "right":
                print(
                    said, item.severity.value, repository, item.rule, f"{file}:{item.location.line}"
                )
    for severity in ("HIGH", "MEDIUM"):
        said_of = [said for key, said in pairs.items() if key[0] == severity]
        read = [said for said in said_of if any(word != "not read" for word in said)]
        right = sum(all(word in ("right", "not read") for word in said) for said in read)
        print(
            f"{severity}: {right} of {len(read)} pairs right, {len(said_of) - len(read)} not read"
        )


def score_fixes(folder: Path, which: str = "") -> None:
    """Each fix: found before it, silent after it."""
    found = silent = count = 0
    for fix in fixes():
        git = folder / fix.repository.replace("/", "+") / "repo"
        if not git.exists() or (which and fix.set != which):
            continue
        count += 1
        before = _fired(git, f"{fix.commit}^", fix)
        after = _fired(git, fix.commit, fix)
        found += before > 0
        silent += before > 0 and after < before
        print(
            "found" if before else "missed",
            before,
            after,
            fix.repository,
            fix.commit,
            fix.mechanism,
        )
    print(f"{found} of {count} found before the fix, {silent} of them silent after it")


def _fired(git: Path, revision: str, fix: Fix) -> int:
    """How often the rules fire in the project at a revision; none is named where no rule covers it."""
    if fix.rules == ("-",):
        return 0
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        folder, _, inner = fix.file.partition("/")
        _checkout(git, revision, home, folder if inner else "")
        report = check(CheckOptions(paths=(str(home),), select=fix.rules, no_cache=True))
        return len(report.findings)


def _checkout(git: Path, revision: str, home: Path, top: str) -> None:
    """The Python files of a revision below the folder of the fix, and those beside it at the top."""
    listing = _git(git, "ls-tree", "-r", "-z", "--name-only", revision)
    for path in listing.decode(errors="replace").split("\0"):
        near = not top or path.startswith(f"{top}/") or "/" not in path
        if not path.endswith(_KEPT) or not near:
            continue
        data = _git(git, "show", f"{revision}:{path}")
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_bytes(data)


def _git(git: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(git), *arguments], capture_output=True).stdout


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    if what == "findings":
        score_findings(Path(where))
    else:
        score_fixes(Path(where), *rest)
