"""How fast an operator would have to be on the device for the plan to be another one."""

from __future__ import annotations

from dataclasses import replace

from torchstone.dataflow.placement.min_cut import best_cut
from torchstone.dataflow.placement.problem import Operator, PlacementProblem, cost_of

_MOST = 64
"""Operators that are asked for, the slowest first: each costs a cut."""


def flip_speeds(problem: PlacementProblem, moved: frozenset[int]) -> dict[int, float | None]:
    """By place: the speed-up over the CPU at which the operator changes sides; None where no
    speed makes it. Operators that cannot move are left out."""
    can = [p for p, op in enumerate(problem.operators) if op.device_seconds is not None]
    can.sort(key=lambda place: -problem.operators[place].cpu_seconds)
    best = cost_of(problem, moved).one_after_the_other
    return {place: _flip(problem, place, place in moved, best) for place in can[:_MOST]}


def _flip(problem: PlacementProblem, place: int, there: bool, best: float) -> float | None:
    op = problem.operators[place]
    if op.device_seconds is None or op.cpu_seconds <= 0:
        return None
    other = cost_of(problem, best_cut(problem, forced={place: not there})).one_after_the_other
    # on the device it may take as long as makes both plans equal
    limit = other - best + op.device_seconds if there else best - other + op.device_seconds
    return op.cpu_seconds / limit if limit > 0 else None


def with_device_seconds(problem: PlacementProblem, place: int, seconds: float) -> PlacementProblem:
    """The same problem with another time for one operator: a test of what `flip_speeds` says."""
    changed: Operator = replace(problem.operators[place], device_seconds=seconds)
    return replace(
        problem,
        operators=(*problem.operators[:place], changed, *problem.operators[place + 1 :]),
    )
