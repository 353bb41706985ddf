"""Published problems, each with its own reference as the candidate: every one must be accepted.

    python benchmarks/kernels/published.py FOLDER [--memory 10G] [--only NAME …] [--log FILE]

FOLDER holds problems in the KernelBench form (a checkout of it has them in KernelBench/level1 and
level2). Nothing of them is part of this project.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

from torchstone.core.errors import TorchstoneError
from torchstone.kernels import Candidate, verify
from torchstone.kernels.candidate import without_problem
from torchstone.kernels.problem import load_problem
from torchstone.kernels.sessions.workshop import Workshop


def as_candidate(source: str) -> str:
    """The reference under the name that candidates have."""
    return without_problem(re.sub(r"\bModel\b", "ModelNew", source))


def judge(path: Path, workshop: Workshop, memory: str) -> str:
    """One line: outcome, seconds, and why it is not accepted."""
    start, before = time.monotonic(), workshop.spent.cpu_seconds
    try:
        problem = load_problem(str(path))
        candidate = Candidate(as_candidate(problem.source), "torch")
        verdict = verify(problem, candidate, memory=memory, workshop=workshop)
    except TorchstoneError as error:
        outcome, why = "error", str(error)
    else:
        outcome = verdict.outcome
        open_left = [item for item in verdict.results if item.status in ("failed", "gap")]
        why = verdict.crash or "; ".join(f"{item.gate}: {item.detail.en}" for item in open_left)
    seconds, cpu = time.monotonic() - start, workshop.spent.cpu_seconds - before
    return f"{outcome:9} {seconds:7.1f} s {cpu:7.1f} CPU-s  {path.parent.name}/{path.stem}  {why[:300]}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--memory", default="")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--log", type=Path, default=None)
    options = parser.parse_args()
    paths = sorted(options.folder.rglob("*.py"), key=_number)
    chosen = [
        p for p in paths if not options.only or any(p.stem.startswith(x) for x in options.only)
    ]
    lines = []
    for path in chosen:
        with (
            Workshop() as workshop
        ):  # a new one each time: what a problem leaves behind ends with it
            lines.append(judge(path, workshop, options.memory))
        print(lines[-1], flush=True)
        if options.log is not None:
            options.log.write_text("\n".join(lines) + "\n", "utf-8")
    accepted = sum(line.startswith("accepted") for line in lines)
    print(f"{accepted} of {len(lines)} accepted")


def _number(path: Path) -> tuple[str, int]:
    found = re.match(r"\d+", path.stem)
    return path.parent.name, int(found[0]) if found else 0


if __name__ == "__main__":
    main()
