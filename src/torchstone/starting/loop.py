"""Run, see what stopped it, supply that one thing, run again, within a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from torchstone.core.place import Place
from torchstone.starting.obstacles import Obstacle
from torchstone.starting.repair import Repair
from torchstone.starting.supplies import MadeDataset, MadeFile, MadeValues, Supply

T = TypeVar("T")
MOST_RUNS = 24
"""Each run imports torch again, a few seconds; most projects lack fewer things."""
MOST_CPU_SECONDS = 90.0
"""Of processor time in all runs together; what was reached by then is reported."""


@dataclass(frozen=True, slots=True)
class Attempt(Generic[T]):
    """How one run ended."""

    outcome: T
    obstacle: Obstacle | None
    """What stopped it, where that was its surroundings."""
    stack: tuple[Place, ...] = ()
    """Lines of the project that the exception went through, the innermost first."""
    cpu_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Started(Generic[T]):
    """The last run, and all that was supplied for it."""

    outcome: T
    supplies: tuple[Supply, ...]
    runs: int


def run_with_repairs(
    run: Callable[[tuple[Supply, ...]], Attempt[T]],
    root: Path,
    script: Path,
    packages: tuple[str, ...] = (),
) -> Started[T]:
    """Run until nothing is missing, nothing can be supplied, or the budget is used up."""
    repair = Repair(root, script, packages)
    supplies: tuple[Supply, ...] = ()
    attempt = run(supplies)
    runs, seconds = 1, attempt.cpu_seconds
    while attempt.obstacle is not None and runs < MOST_RUNS and seconds < MOST_CPU_SECONDS:
        new = repair.supply_for(attempt.obstacle, attempt.stack, supplies)
        if not new:
            break
        supplies = (*_kept(supplies, new), *new)
        attempt = run(supplies)
        runs += 1
        seconds += attempt.cpu_seconds
    return Started(attempt.outcome, supplies, runs)


def _kept(old: tuple[Supply, ...], new: tuple[Supply, ...]) -> tuple[Supply, ...]:
    """What was supplied before, without files that turn out to be folders or of another form, and without
    values about which more is known now."""
    again = {(item.path, item.scope) for item in new if isinstance(item, MadeValues)}
    old = tuple(
        item
        for item in old
        if not isinstance(item, MadeValues) or (item.path, item.scope) not in again
    )
    datasets = {item.name for item in new if isinstance(item, MadeDataset)}
    old = tuple(
        item for item in old if not (isinstance(item, MadeDataset) and item.name in datasets)
    )
    files = [item.path for item in new if isinstance(item, MadeFile)]
    return tuple(
        item
        for item in old
        if not isinstance(item, MadeFile)
        or not any(path == item.path or path.startswith(f"{item.path}/") for path in files)
    )
