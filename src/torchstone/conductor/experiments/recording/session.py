"""A script of the project, run to its end or for as long as it is cheap, under the recorders."""

from __future__ import annotations

import contextlib
import io
import os
import random
import signal
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from torchstone.conductor.experiments.recording.calls import CallRecorder
from torchstone.conductor.experiments.recording.run import Run
from torchstone.conductor.experiments.recording.training import (
    CallNotes,
    EnoughError,
    TrainingRecorder,
)
from torchstone.conductor.probes.harvest.group import use_own_group
from torchstone.conductor.probes.harvest.precision import RunMode, answer_for_accelerators
from torchstone.conductor.probes.harvest.session import leave_compiler_out
from torchstone.observe.non_finite import FirstNonFinite, NonFinite
from torchstone.observe.where import Where
from torchstone.starting.applying import put_in_copy
from torchstone.starting.arguments import add_arguments, find_missing_arguments
from torchstone.starting.diagnosis import is_fault_of_ours, own_lines, own_place_of
from torchstone.starting.documents import start_program
from torchstone.starting.lookups import Lookups
from torchstone.starting.misfits import find_any_obstacle
from torchstone.starting.obstacles import NoTime
from torchstone.starting.supplies import Supply

CPU_SECONDS = 20.0
"""A default run that ended in NaN took 20 s while runs of four steps saw nothing."""

_LATER = 2.0
"""Seconds for the step that is under way: a run is ended between steps where it makes any."""
_AGAIN = 1.0
"""Seconds after which the end is asked for once more: Python drops what is raised in a destructor."""
_MOST_PRINTED = 400
"""Characters of the last lines that a program prints: the message of argparse with its usage."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a program is started."""

    root: Path
    script: str
    arguments: tuple[str, ...] = ()
    seed: int = 0
    supplies: tuple[Supply, ...] = ()
    """What stands in the place of what is missing here."""


def record(start: Start, cpu_seconds: float = CPU_SECONDS) -> tuple[Run, TrainingRecorder]:
    """Run it and write everything down; the recorder is quiet afterwards."""
    run, places = Run(start.root, start.script), Where(start.root)
    calls = CallRecorder(start.root)

    def at_step(count: int) -> None:
        calls.step = count

    training = TrainingRecorder(run, places, cpu_seconds, at_step)
    lookups = prepare(start)
    training.install()
    with RunMode(), CallNotes(run, places):
        calls.start()
        try:
            with stop_after(cpu_seconds + _LATER):
                run_script(start, run, places, lookups)
        finally:
            calls.stop()
    run.calls = calls.calls
    training.quiet = True
    return run, training


def find_non_finite(start: Start, infinities: bool, cpu_seconds: float = CPU_SECONDS) -> Run:
    """Run it again and stop at the first operator whose output is not finite."""
    run, places = Run(start.root, start.script), Where(start.root)
    training = TrainingRecorder(run, places, cpu_seconds, lambda _: None)
    lookups = prepare(start)
    training.install()

    def found(seen: NonFinite) -> None:
        run.non_finite, run.non_finite_step = seen, len(run.steps)
        raise EnoughError

    with RunMode(), FirstNonFinite(places, found, infinities):
        run_script(start, run, places, lookups)
    return run


def prepare(start: Start, rank: int = 0, world: int = 1, exchange: str = "") -> Lookups:
    """Make this process the one that runs the program: nothing is put back. What the program looks for in
    vain is noted."""
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(world),
        LOCAL_WORLD_SIZE=str(world),
        MASTER_ADDR="localhost",
        MASTER_PORT="29500",
    )
    os.chdir(start.root)
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(start.seed)
    random.seed(start.seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(start.seed)
    leave_compiler_out()
    use_own_group(rank, world, exchange)
    answer_for_accelerators()
    return put_in_copy(start.supplies, start.root, Where(start.root))


@contextlib.contextmanager
def stop_after(cpu_seconds: float) -> Iterator[None]:
    """Raise EnoughError in a program that has computed for so long, wherever it is."""

    def stop(*_: object) -> None:
        raise EnoughError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def run_script(start: Start, run: Run, places: Where, lookups: Lookups) -> None:
    """Start it as a person would; how it ended is written down."""
    path = start.root / start.script
    sys.argv = [str(path), *add_arguments(start.arguments, start.supplies)]
    sys.path[:0] = [str(path.parent), str(start.root)]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            start_program(str(path))
    except EnoughError:
        run.ended = "time"
        run.obstacle = None if run.steps else NoTime()
    except SystemExit as end:
        run.ended = "" if not end.code else f"exit {end.code}"
        run.obstacle = find_missing_arguments(end)
    except BaseException as error:  # whatever the script raises is a fact of the run
        run.ended = f"{type(error).__name__}: {str(error)[:300]}"
        if is_fault_of_ours(error, places):
            run.ended = (
                f"a fault of Torchstone, not of the script: {run.ended} ({own_place_of(error)})"
            )
            return
        run.failed_at = places.last_raised(error)
        run.obstacle = find_any_obstacle(error, start.supplies, lookups)
        run.stack = own_lines(error, places.is_own)
    run.last_lines = last_lines_of(printed.getvalue())


def last_lines_of(text: str) -> str:
    """Whole lines from the end of a text, as many as fit, on one line."""
    kept: list[str] = []
    for line in reversed(text.rstrip().splitlines()):
        if sum(map(len, kept)) + len(line) > _MOST_PRINTED:
            break
        kept.append(line)
    return " | ".join(reversed(kept))
