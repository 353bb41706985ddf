"""The best placement when CPU, bus and device work at the same time: the busiest of the three counts.

For any weights of the three that sum to one, the cheapest weighted placement is a minimum cut and
its cost a lower bound. The search moves weight to the busiest resource, keeps the best placement
that a cut or a single move gives, and the best bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.dataflow.placement.min_cut import Weights, best_cut
from torchstone.dataflow.placement.problem import PlacementProblem, Split, cost_of

_ROUNDS = 40
_STEP = 0.35
_CLOSE = 1e-3  # a gap below a thousandth is not worth another cut
_MOVES = 400  # single moves tried on the best cut; each costs a pass over the graph's data


@dataclass(frozen=True, slots=True)
class BoundedPlacement:
    """A placement, and a time that no placement can go below."""

    moved: frozenset[int]
    bound: float


def best_pipelined(problem: PlacementProblem) -> BoundedPlacement:
    """Operators on the device so that the busiest resource is as little busy as can be found."""
    best: frozenset[int] = frozenset()
    best_split = cost_of(problem, best)
    everything = frozenset(
        place for place, op in enumerate(problem.operators) if op.device_seconds is not None
    )
    for start in (everything, best_cut(problem)):
        split = cost_of(problem, start)
        if split.overlapped < best_split.overlapped:
            best, best_split = start, split
    bound = 0.0
    shares = [1 / 3, 1 / 3, 1 / 3]
    for turn in range(_ROUNDS):
        cut = best_cut(problem, Weights(*shares))
        split = cost_of(problem, cut)
        bound = max(bound, _weighted(split, shares))
        if split.overlapped < best_split.overlapped:
            best, best_split = cut, split
        if best_split.overlapped <= bound * (1 + _CLOSE):
            break
        shares = _shifted(shares, split, _STEP / (1 + turn / 4))
    improved = _single_moves(problem, best)
    return BoundedPlacement(improved, min(bound, cost_of(problem, improved).overlapped))


def _weighted(split: Split, shares: list[float]) -> float:
    return split.cpu * shares[0] + split.device * shares[1] + split.bus * shares[2]


def _shifted(shares: list[float], split: Split, step: float) -> list[float]:
    """More weight for what is busier than the others."""
    busy = (split.cpu, split.device, split.bus)
    top = max(busy) or 1.0
    raised = [
        share * (1 - step) + step * (time / top) ** 4
        for share, time in zip(shares, busy, strict=True)
    ]
    whole = sum(raised) or 1.0
    return [max(item / whole, 1e-4) for item in raised]


def _single_moves(problem: PlacementProblem, start: frozenset[int]) -> frozenset[int]:
    """Operators change sides one by one as long as the busiest resource gains."""
    moved = set(start)
    best = cost_of(problem, moved).overlapped
    order = sorted(
        (place for place, op in enumerate(problem.operators) if op.device_seconds is not None),
        key=lambda place: -problem.operators[place].cpu_seconds,
    )[:_MOVES]
    if len(problem.operators) > 5 * _MOVES:  # a pass over a large graph for each move is too slow
        order = order[: _MOVES // 8]
    gained = True
    while gained:
        gained = False
        for place in order:
            moved ^= {place}
            now = cost_of(problem, moved).overlapped
            if now < best * (1 - 1e-9):
                best, gained = now, True
            else:
                moved ^= {place}
    return frozenset(moved)
