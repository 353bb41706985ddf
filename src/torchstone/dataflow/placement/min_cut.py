"""The best placement for one device, exactly: a minimum cut between CPU and device.

Every operator is a vertex; the cut severs it from the side whose time it does not pay. Each datum
has a vertex per direction, so that it is brought over once however many operators use it there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_matrix  # type: ignore[import-untyped]
from scipy.sparse.csgraph import (  # type: ignore[import-untyped]
    breadth_first_order,
    maximum_flow,
)

from torchstone.dataflow.placement.problem import CONSUMER, HOST, PlacementProblem

_SCALE = 1 << 29  # scipy's flow is in 32-bit whole numbers: all times together are this many units
_NEVER = 1 << 30


@dataclass(frozen=True, slots=True)
class Weights:
    """How much a second on each resource counts."""

    cpu: float = 1.0
    device: float = 1.0
    bus: float = 1.0


EVEN = Weights()


def best_cut(
    problem: PlacementProblem,
    weights: Weights = EVEN,
    forced: dict[int, bool] | None = None,
) -> frozenset[int]:
    """The operators (by place) that are on the device in the cheapest placement.

    `forced` says of some that they must (True) or must not be there."""
    total = _total(problem, weights)
    if not problem.operators or total <= 0:
        return frozenset(place for place, there in (forced or {}).items() if there)
    unit = _SCALE / total
    count = len(problem.operators)
    here, there = count, count + 1
    rows: list[int] = []
    columns: list[int] = []
    capacities: list[int] = []

    def arc(source: int, target: int, capacity: int) -> None:
        if capacity > 0:
            rows.append(source)
            columns.append(target)
            capacities.append(min(capacity, _NEVER))

    for place, op in enumerate(problem.operators):
        must = (forced or {}).get(place)
        if op.device_seconds is None or must is False:
            arc(here, place, _NEVER)
            continue
        if must:
            arc(place, there, _NEVER)
            continue
        # severed from the device's end it stays and pays the CPU's time, and the other way round
        arc(place, there, round(op.cpu_seconds * weights.cpu * unit))
        arc(here, place, round(op.device_seconds * weights.device * unit))
    vertices = count + 2
    for datum in problem.data:
        price = round(datum.seconds * weights.bus * unit)
        if not price:
            continue
        maker = here if datum.maker == HOST else datum.maker
        ends = {HOST: here, CONSUMER: there}
        users = {ends.get(user, user) for user in datum.users}
        to_device, to_host = vertices, vertices + 1
        vertices += 2
        arc(maker, to_device, price)
        if maker != here:
            arc(to_host, maker, price)
        for user in users:
            if user != here:
                arc(to_device, user, _NEVER)
            if maker != here and user != there:
                arc(user, to_host, _NEVER)
    shape = (vertices, vertices)
    graph = coo_matrix((np.array(capacities, np.int32), (rows, columns)), shape, np.int32).tocsr()
    graph.data = np.minimum(graph.data, _NEVER).astype(np.int32)
    flow = maximum_flow(graph, here, there).flow
    left = graph - flow
    left.data = np.maximum(left.data, 0)
    left.eliminate_zeros()
    reached = breadth_first_order(left, here, return_predecessors=False)
    stays = {int(vertex) for vertex in reached}
    return frozenset(place for place in range(count) if place not in stays)


def _total(problem: PlacementProblem, weights: Weights) -> float:
    """More than any placement costs that is worth taking: everything on the CPU."""
    return max(sum(op.cpu_seconds for op in problem.operators) * weights.cpu, 1e-12)
