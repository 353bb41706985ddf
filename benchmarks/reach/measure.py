"""How far public projects come: `python benchmarks/reach/measure.py FOLDER [--python ENV]`.

FOLDER holds checked-out repositories, one folder each, fetched by hand; none is part of this
project. For each the first start that `review` would choose is run with `dryrun`. The table has no
names: a number, how far it came, what stopped it, what was supplied, and processor seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from torchstone.conductor.project.facts import EntryPoint, Launch
from torchstone.conductor.project.survey import survey

_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Row:
    """One project."""

    name: str
    steps: int
    findings: tuple[str, ...]
    cause: str
    supplied: int
    cpu_seconds: float


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("folder", type=Path)
    words.add_argument("--python", default="")
    words.add_argument("--names", action="store_true", help="show the names of the folders")
    given = words.parse_args()
    rows = []
    for number, root in enumerate(
        sorted(path for path in given.folder.iterdir() if path.is_dir()), 1
    ):
        rows.append(measure(root, given.python))
        row = rows[-1]
        name = row.name if given.names else f"{number}"
        found = ", ".join(row.findings) or "-"
        print(
            f"| {name} | {row.steps} | {row.cause} | {found} | {row.supplied} | {row.cpu_seconds:.0f} |",
            flush=True,
        )
    reached = sum(row.steps > 0 for row in rows)
    cpu = statistics.median(row.cpu_seconds for row in rows)
    print(f"{reached} of {len(rows)} reach an optimizer step; median {cpu:.0f} s of CPU")


def measure(root: Path, python: str) -> Row:
    """The first start of a project, as `review` chooses it."""
    scripts = [item for item in survey(root).entry_points if item.trains or item.launched]
    if not scripts:
        return Row(root.name, 0, (), "no start found", 0, 0.0)
    script = scripts[0]
    launch = _launch(script)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [
            sys.executable, "-m", "torchstone", "dryrun", os.path.relpath(root / script.path, root / launch.folder),
            "--format", "json", "--max-seconds", "40", *(["--python", python] if python else []), "--", *launch.arguments,
        ],
        cwd=root / launch.folder, capture_output=True, text=True, timeout=_SECONDS * 4, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(root), os.environ.get("PYTHONPATH", "")))},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _row(root.name, done, cpu)


def _launch(script: EntryPoint) -> Launch:
    return script.alone or next(iter(script.launches), Launch(script.required))


def _row(name: str, done: subprocess.CompletedProcess[str], cpu: float) -> Row:
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return Row(name, 0, (), (done.stderr.strip() or f"exit {done.returncode}")[:160], 0, cpu)
    measures = {item["name"]: item["value"] for item in report.get("measures", [])}
    findings = tuple(f"{item['rule']} {item['severity']}" for item in report.get("findings", []))
    gaps = [item["reason"]["id"] for item in report.get("gaps", []) if item.get("failed")]
    steps, supplied = int(measures.get("optimizer_steps", 0)), int(measures.get("supplied", 0))
    return Row(name, steps, findings, ", ".join(gaps) or "-", supplied, cpu)


if __name__ == "__main__":
    main()
