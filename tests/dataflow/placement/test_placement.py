"""Placements are optimal, or say how far they may be from it; never worse than doing nothing."""

from __future__ import annotations

import pytest

from tests.dataflow.placement.problems import optimum, random_problem
from torchstone.dataflow.graph.dag import FUNCTION, DAGNode
from torchstone.dataflow.placement.flips import flip_speeds, with_device_seconds
from torchstone.dataflow.placement.min_cut import best_cut
from torchstone.dataflow.placement.pipelined import best_pipelined
from torchstone.dataflow.placement.problem import (
    HOST,
    Datum,
    Operator,
    PlacementProblem,
    cost_of,
    warm_seconds,
)


def everything(problem: PlacementProblem) -> frozenset[int]:
    return frozenset(p for p, op in enumerate(problem.operators) if op.device_seconds is not None)


@pytest.mark.parametrize("count", [1, 5, 40, 150])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_cut_is_the_optimum(count: int, seed: int) -> None:
    problem = random_problem(count, seed)
    moved = best_cut(problem)
    found = cost_of(problem, moved).one_after_the_other
    assert found == pytest.approx(optimum(problem), rel=1e-6)
    assert found <= cost_of(problem, frozenset()).one_after_the_other
    assert found <= cost_of(problem, everything(problem)).one_after_the_other
    assert all(problem.operators[place].device_seconds is not None for place in moved)


@pytest.mark.parametrize(("count", "seed"), [(5, 0), (20, 1), (40, 2), (40, 3)])
def test_the_pipelined_plan_is_within_its_bound(count: int, seed: int) -> None:
    problem = random_problem(count, seed)
    found = best_pipelined(problem)
    best = optimum(problem, overlapped=True)
    mine = cost_of(problem, found.moved).overlapped
    assert found.bound <= best * (1 + 1e-6)
    assert best <= mine * (1 + 1e-6)
    assert mine <= best * 1.1
    assert mine <= cost_of(problem, frozenset()).overlapped
    assert mine <= cost_of(problem, everything(problem)).overlapped


def test_a_call_that_was_interrupted_takes_the_rate_of_the_others() -> None:
    """Random sizes leave one call for each operator; one of them waited for the machine."""
    sizes, times = (100, 110, 120, 130, 9000), (1.0, 1.1, 400.0, 1.3, 5.0)
    nodes = [
        DAGNode(n, "cv2.resize", FUNCTION, performance={"execution_time": time, "bytes_in": size})
        for n, (size, time) in enumerate(zip(sizes, times, strict=True))
    ]
    assert warm_seconds(nodes) == pytest.approx([1.0, 1.1, 1.2, 1.3, 5.0])


def test_one_transfer_for_many_users() -> None:
    """Three operators use one image: it is brought over once, so moving all three pays."""
    operators = (Operator(0, 1.0, 0.5), Operator(1, 1.0, 0.5), Operator(2, 1.0, 0.5))
    problem = PlacementProblem(operators, (Datum(HOST, (0, 1, 2), 1.2, 100, 1),))
    moved = best_cut(problem)
    assert moved == {0, 1, 2}
    assert cost_of(problem, moved).transfers == 1
    dearer = PlacementProblem(operators, (Datum(HOST, (0, 1, 2), 1.6, 100, 1),))
    assert best_cut(dearer) == frozenset()


def test_the_flip_is_where_the_plan_changes() -> None:
    problem = random_problem(30, 4)
    moved = best_cut(problem)
    for place, speed in list(flip_speeds(problem, moved).items())[:8]:
        if speed is None:
            continue
        limit = problem.operators[place].cpu_seconds / speed
        faster = best_cut(with_device_seconds(problem, place, limit * 0.99))
        slower = best_cut(with_device_seconds(problem, place, limit * 1.01))
        assert place in faster
        assert place not in slower


def test_nothing_to_place() -> None:
    empty = PlacementProblem((), ())
    assert best_cut(empty) == frozenset()
    assert best_pipelined(empty).moved == frozenset()
