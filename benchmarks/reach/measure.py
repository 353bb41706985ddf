"""How far public projects come: `python benchmarks/reach/measure.py FOLDER [--build-env] [--python ENV]`.

FOLDER holds checked-out repositories, one folder each, fetched by hand; none is part of this
project. The starts that `review` would choose are run with `dryrun` until one makes an optimizer step; where
none does, the first is run with real tensors, as the experiments of `review` do. The table has no names: a
number, the steps, with which tensors, the first stop, findings, what was supplied, and processor seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from torchstone.conductor.project.facts import EntryPoint, Launch
from torchstone.conductor.project.survey import survey
from torchstone.core.errors import TorchstoneError
from torchstone.starting.building import build_environment

_SECONDS = 600
_MOST_STARTS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One project."""

    name: str
    steps: int = 0
    tensors: str = "-"
    cause: str = "-"
    findings: tuple[str, ...] = ()
    supplied: int = 0
    cpu_seconds: float = 0.0

    def show(self, name: str) -> str:
        found = ", ".join(self.findings) or "-"
        return f"| {name} | {self.steps} | {self.tensors} | {self.cause} | {found} | {self.supplied} | {self.cpu_seconds:.0f} |"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("folder", type=Path)
    words.add_argument("--python", default="")
    words.add_argument("--build-env", action="store_true")
    words.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "reach"))
    words.add_argument("--names", action="store_true", help="show the names of the folders")
    given = words.parse_args()
    rows = []
    for number, root in enumerate(
        sorted(path for path in given.folder.iterdir() if path.is_dir()), 1
    ):
        python = built(root, given.cache) if given.build_env else given.python
        rows.append(measure(root.resolve(), python))
        print(rows[-1].show(root.name if given.names else str(number)), flush=True)
    reached = sum(row.steps > 0 for row in rows)
    cpu = statistics.median(row.cpu_seconds for row in rows)
    print(f"{reached} of {len(rows)} reach an optimizer step; median {cpu:.0f} s of CPU")


def built(root: Path, cache: Path) -> str:
    """The environment of a project; ours where it cannot be built."""
    try:
        return build_environment(root, cache).prefix
    except TorchstoneError:
        return ""


def measure(root: Path, python: str) -> Row:
    """The starts of a project, as `review` chooses them."""
    scripts = [item for item in survey(root).entry_points if item.trains or item.launched]
    if not scripts:
        return Row(root.name, cause="no start found")
    before = used()
    rows: list[Row] = []
    for script in scripts[:_MOST_STARTS]:
        rows.append(dry_run(root, script, python))
        if rows[-1].steps:
            break
    if not rows[-1].steps:
        rows.append(run_with_real_tensors(root, python))
    best = max(rows, key=lambda row: row.steps)
    found = tuple(dict.fromkeys(text for row in rows for text in row.findings))
    return Row(
        root.name, best.steps, best.tensors, rows[0].cause, found, rows[0].supplied, used() - before
    )


def used() -> float:
    done = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.ru_utime + done.ru_stime


def dry_run(root: Path, script: EntryPoint, python: str) -> Row:
    launch = script.alone or next(iter(script.launches), Launch(script.required))
    home = root / launch.folder
    named = ("--python", python) if python else ()
    done = run(
        home, root, "dryrun", os.path.relpath(root / script.path, home),
        "--format", "json", "--max-seconds", "40", *named, "--", *launch.arguments,
    )  # fmt: skip
    return read(root.name, done.stdout, done.stderr, "optimizer_steps", "fake")


def run_with_real_tensors(root: Path, python: str) -> Row:
    """The experiments of a review, which run the first script on the CPU."""
    with tempfile.TemporaryDirectory() as folder:
        named = ("--python", python) if python else ()
        done = run(
            root,
            root,
            "review",
            str(root),
            "--tools",
            "experiments",
            "--no-cache",
            "--output",
            folder,
            *named,
        )
        reports = sorted(Path(folder).rglob("report.json"))
        text = reports[0].read_text("utf-8") if reports else ""
        return read(root.name, text, done.stderr, "steps", "real")


def run(home: Path, root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    searched = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-m", "torchstone", *words]
    try:
        return subprocess.run(
            command, cwd=home, capture_output=True, text=True, timeout=_SECONDS, check=False,
            env={**os.environ, "PYTHONPATH": searched},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "it took too long")


def read(name: str, text: str, errors: str, counted: str, tensors: str) -> Row:
    try:
        report = json.loads(text)
    except ValueError:
        return Row(name, cause=(errors.strip().splitlines() or ["no report"])[-1][:160])
    measures = [(item["name"], item["value"]) for item in report.get("measures", [])]
    steps = max((int(value) for key, value in measures if key == counted), default=0)
    supplied = max((int(value) for key, value in measures if key == "supplied"), default=0)
    findings = tuple(f"{item['rule']} {item['severity']}" for item in report.get("findings", []))
    gaps = [item["reason"]["id"] for item in report.get("gaps", []) if item.get("failed")]
    return Row(name, steps, tensors, ", ".join(dict.fromkeys(gaps)) or "-", findings, supplied)


if __name__ == "__main__":
    main()
