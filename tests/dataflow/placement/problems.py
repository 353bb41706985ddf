"""Random placement problems, and their optimum by another method."""

from __future__ import annotations

import random

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

from torchstone.dataflow.placement.problem import HOST, Datum, Operator, PlacementProblem


def random_problem(count: int, seed: int, fixed: float = 0.3) -> PlacementProblem:
    """A layered graph; some operators cannot move, some gain, some lose."""
    rng = random.Random(seed)
    operators = []
    for place in range(count):
        cpu = rng.lognormvariate(-7, 1)
        device = None if rng.random() < fixed else cpu / rng.uniform(0.5, 20)
        operators.append(Operator(place, cpu, device))
    users: dict[int, list[int]] = {place: [] for place in range(count)}
    for place in range(1, count):
        for maker in rng.sample(
            range(max(0, place - 15), place), min(place, rng.choice((1, 1, 2)))
        ):
            users[maker].append(place)
    data = [
        Datum(place, tuple(users[place]) or (HOST,), rng.lognormvariate(-8, 1), 1000, 1)
        for place in range(count)
    ]
    data += [
        Datum(HOST, (place,), rng.lognormvariate(-8, 1), 1000, 1) for place in range(0, count, 10)
    ]
    return PlacementProblem(tuple(operators), tuple(data))


def optimum(problem: PlacementProblem, overlapped: bool = False) -> float:
    """By integer programming (HiGHS)."""
    n, m = len(problem.operators), len(problem.data)
    size = n + 2 * m + 1  # on the device?; to the device, to the host; the busiest resource
    cost, low, high = np.zeros(size), np.zeros(size), np.ones(size)
    high[-1] = np.inf
    cpu = np.array([op.cpu_seconds for op in problem.operators])
    device = np.array([op.device_seconds or 0.0 for op in problem.operators])
    high[:n] = [op.device_seconds is not None for op in problem.operators]
    bus = np.repeat([datum.seconds for datum in problem.data], 2)
    rows: list[dict[int, float]] = []
    least: list[float] = []
    for place, datum in enumerate(problem.data):
        for user in datum.users:
            for way, sign in ((0, 1.0), (1, -1.0)):
                row = {n + 2 * place + way: 1.0}
                for end, weight in ((user, -sign), (datum.maker, sign)):
                    if end != HOST:
                        row[end] = row.get(end, 0.0) + weight
                rows.append(row)
                least.append(0.0)
    if overlapped:
        cost[-1] = 1.0
        rows += [
            {**dict(enumerate(cpu)), size - 1: 1.0},
            {**dict(enumerate(-device)), size - 1: 1.0},
            {**{n + i: -value for i, value in enumerate(bus)}, size - 1: 1.0},
        ]
        least += [float(cpu.sum()), 0.0, 0.0]
    else:
        cost[:n], cost[n : n + 2 * m] = device - cpu, bus
    matrix = lil_matrix((len(rows), size))
    for number, row in enumerate(rows):
        for column, value in row.items():
            matrix[number, column] = value
    found = milp(
        cost, constraints=LinearConstraint(matrix.tocsr(), lb=least), bounds=Bounds(low, high),
        integrality=np.r_[np.ones(n), np.zeros(2 * m + 1)], options={"mip_rel_gap": 0.0},
    )  # fmt: skip
    return float(found.fun) + (0.0 if overlapped else float(cpu.sum()))
