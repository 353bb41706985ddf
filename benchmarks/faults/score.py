"""Scores monitors on the cases: found within 50 steps, false alarms per 10 k healthy steps."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import math
import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import torch

from faults.peers import PEERS
from faults.scene import ONSET, WITHIN, Case, Scene

Job = TypeVar("Job")
Result = TypeVar("Result")
AFTER = 60
AFTER_BENIGN = 150


@dataclass
class Outcome:
    """What one run of one case showed."""

    case: Case
    model: str
    seed: int
    first: dict[str, int | None] = field(default_factory=dict)
    """Monitor → the first alarm at or after the onset, counted from it."""
    early: dict[str, int] = field(default_factory=dict)
    """Monitor → alarm episodes before the onset."""
    said: str = ""

    def found(self, monitor: str) -> bool:
        first = self.first.get(monitor)
        return first is not None and first <= WITHIN


def cases(folder: str) -> list[Case]:
    """Every case in a folder."""
    package = importlib.import_module(f"faults.{folder}")
    found = []
    for item in sorted(pkgutil.iter_modules(package.__path__), key=lambda item: item.name):
        module = importlib.import_module(f"{package.__name__}.{item.name}")
        found += [value for value in vars(module).values() if isinstance(value, Case)]
    return found


def run_case(case: Case, model: str, seed: int) -> Outcome:
    """One run, watched by us and by every peer at once."""
    if case.apply.__module__.startswith("faults.ranks"):
        alarms, said = _watch_ranks(case, model, seed)
    else:
        alarms, said = watch(Scene(model, seed), case, steps_of(case))
    outcome = Outcome(case, model, seed, said=said)
    for name, steps in alarms.items():
        outcome.early[name] = len(episodes([s for s in steps if s < case.onset]))
        late = [s - case.onset for s in steps if s >= case.onset]
        outcome.first[name] = late[0] if late else None
    return outcome


def steps_of(case: Case) -> int:
    """How long a case is run."""
    return case.onset + (AFTER if case.kind == "fault" else AFTER_BENIGN)


def _watch_ranks(case: Case, model: str, seed: int) -> tuple[dict[str, list[int]], str]:
    """The same in two processes; what any rank says counts."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
             str(Path(__file__).with_name("rank_program.py")), case.name, model, str(seed), folder],
            check=True, capture_output=True, timeout=600, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        told = [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(2)]
    alarms = {
        name: sorted(step for one in told for step in one["alarms"][name])
        for name in told[0]["alarms"]
    }
    return alarms, " / ".join(one["said"] for one in told if one["said"])


def watch(scene: Scene, case: Case | None, steps: int) -> tuple[dict[str, list[int]], str]:
    """Steps at which each monitor alarmed."""
    from torchstone.watch import Watch

    alarms: dict[str, list[int]] = {"torchstone": [], **{name: [] for name in PEERS}}
    peers = {name: make() for name, make in PEERS.items()}
    lines: list[str] = []

    def note(alert: object) -> None:
        alarms["torchstone"].append(scene.step)
        lines.append(alert.line())  # type: ignore[attr-defined]

    # the budget is about time, and time would make the scores a matter of luck
    monitor = Watch(folder=False, on_alert=note, print_every=10**9, budget=10)

    def step(batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        monitor.prepare(scene.train_step, (batch,), {})
        monitor.begin()
        loss = scene.train_step(batch)
        monitor.end(loss, (batch,))
        norm = next(iter(monitor.optimizers.values())).norm if monitor.optimizers else math.nan
        for name, peer in peers.items():
            if peer(float(loss), norm):
                alarms[name].append(scene.step)
        return loss

    with contextlib.redirect_stderr(io.StringIO()):
        scene.run(case, steps, step)
    monitor.close()
    return alarms, " / ".join(lines[:4])


def episodes(steps: list[int], window: int = 50) -> list[int]:
    """First steps of stretches of alarms less than `window` apart."""
    starts: list[int] = []
    last = -(10**9)
    for step in steps:
        if step - last > window:
            starts.append(step)
        last = step
    return starts


def healthy(model: str, seed: int, steps: int) -> dict[str, int]:
    """False-alarm episodes of every monitor on a healthy run."""
    alarms, said = watch(Scene(model, seed), None, steps)
    if said:
        print(f"  healthy {model} {seed}: {said}")
    return {name: len(episodes(found)) for name, found in alarms.items()}


def every(chosen: list[Case], seeds: tuple[int, ...]) -> Iterator[Outcome]:
    """All runs of the cases."""
    for case in chosen:
        for model in case.models:
            for seed in seeds:
                yield run_case(case, model, seed)


Row = tuple[str, str, str, int, dict[str, int | None], dict[str, int], str]


def every_in(folder: str, seeds: tuple[int, ...]) -> list[Outcome]:
    """All runs of a folder, as many at once as there are cores; time has no part in a score."""
    known = {case.name: case for case in cases(folder)}
    jobs = [(folder, c.name, m, seed) for c in known.values() for m in c.models for seed in seeds]
    rows = on_all_cores(_one, jobs)
    return [Outcome(known[name], model, seed, first, early, said)
            for _, name, model, seed, first, early, said in rows]  # fmt: skip


def on_all_cores(function: Callable[[Job], Result], jobs: Iterable[Job]) -> list[Result]:
    """What the function says of every job, in order."""
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(function, jobs))


def _one(job: tuple[str, str, str, int]) -> Row:
    """One run in a process of its own; a case holds functions, which do not travel."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    folder, name, model, seed = job
    case = next(case for case in cases(folder) if case.name == name)
    outcome = run_case(case, model, seed)
    return folder, name, model, seed, outcome.first, outcome.early, outcome.said


__all__ = [
    "ONSET",
    "Outcome",
    "cases",
    "episodes",
    "every",
    "every_in",
    "healthy",
    "run_case",
    "steps_of",
    "watch",
]
