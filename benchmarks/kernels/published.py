"""Published problems, each with its own reference as the candidate: every one must be accepted.

    python benchmarks/kernels/published.py FOLDER --log FILE [--memory 12G] [--stride 7] [--only NAME …]

FOLDER holds problems in the KernelBench form (a checkout of it has them in KernelBench/level1 and
level2). Nothing of them is part of this project. With a stride of 7 the problems number 0, 7, 14, … come
first, then 1, 8, 15, …: whenever the run is stopped, what was judged is a fair sample of all. The log gets
one line of JSON for each verdict; problems that it holds already are not judged again.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from torchstone.core.errors import TorchstoneError
from torchstone.kernels import Candidate, verify
from torchstone.kernels.candidate import without_problem
from torchstone.kernels.problem import load_problem
from torchstone.kernels.sessions.workshop import Workshop


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one problem, and why it was not accepted."""

    problem: str
    outcome: str
    seconds: float
    cpu_seconds: float
    why: str


def as_candidate(source: str) -> str:
    """The reference under the name that candidates have."""
    return without_problem(re.sub(r"\bModel\b", "ModelNew", source))


def judge(path: Path, memory: str) -> Judged:
    """The verdict on a problem's own reference, in a workshop of its own."""
    with Workshop() as workshop:
        start = time.monotonic()
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
        seconds, cpu = time.monotonic() - start, workshop.spent.cpu_seconds
    return Judged(_named(path), outcome, round(seconds, 1), round(cpu, 1), why)


def in_strides(paths: list[Path], stride: int) -> list[Path]:
    """Every n-th one first, then those behind them."""
    return [path for first in range(stride) for path in paths[first::stride]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--memory", default="")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    paths = in_strides(sorted(options.folder.rglob("*.py"), key=_number), options.stride)
    chosen = [
        path
        for path in paths
        if not options.only or any(_named(path).startswith(name) for name in options.only)
    ]
    options.log.touch()
    judged = [Judged(**json.loads(line)) for line in options.log.read_text("utf-8").splitlines()]
    known = {item.problem for item in judged}
    for path in chosen:
        if _named(path) in known:
            continue
        item = judge(path, options.memory)
        judged.append(item)
        with options.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(item), ensure_ascii=False) + "\n")
        spent = f"{item.seconds:7.1f} s {item.cpu_seconds:7.1f} CPU-s"
        print(f"{item.outcome:9} {spent}  {item.problem}  {item.why[:300]}", flush=True)
    print(dict(Counter(item.outcome for item in judged)))


def _named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def _number(path: Path) -> tuple[str, int]:
    found = re.match(r"\d+", path.stem)
    return path.parent.name, int(found[0]) if found else 0


if __name__ == "__main__":
    main()
