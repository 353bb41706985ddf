"""A bound that is found out only as far as needed judges like the whole one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.kernels.referees import loaded
from torchstone.kernels.harness.inputs.cases import Case
from torchstone.kernels.harness.inputs.enlarging import plan_lengths
from torchstone.kernels.harness.inputs.sizing import plan_families
from torchstone.kernels.harness.judging.referee import Referee, judge_answer
from torchstone.kernels.harness.reference.perturbations import (
    PERTURBATIONS,
    REPEATED,
    Perturbations,
    shifted,
)
from torchstone.kernels.harness.values import encode
from torchstone.kernels.messages.trees import AnswerTree
from torchstone.kernels.problem import load_problem

_OFF = (0.0, 0.5, 1.0, 3.0, 6.0, 12.0, 30.0, 1000.0)
"""Units by which an answer is made wrong: below, around and above every tolerance."""


def planned(problem: str) -> Referee:
    known = load_problem(problem)
    referee = loaded(known.source, known.framework, 3, 1 << 14)
    plan_families(referee.plan, 1, 2, 0)
    plan_lengths(referee.plan, 12)
    return referee


def answer_off_by(
    case: Case, units: list[torch.Tensor], off: float
) -> tuple[AnswerTree, list[bytes]]:
    """The right answer, every third element off by so many units."""
    buffers: list[bytes] = []
    leaves = []
    for i, answer in enumerate(case.answers):
        value = answer.reference.clone()
        if value.is_floating_point():
            every_third = torch.arange(value.numel()).remainder(3).eq(0).reshape(value.shape)
            moved = (answer.exact + off * units[i]).to(value.dtype)
            value = torch.where(every_third & torch.isfinite(value), moved, value)
        given = value.numpy() if answer.kind == "numpy" else value
        leaves.append(encode(given, buffers))
    return AnswerTree(case.structure, leaves), buffers


@pytest.mark.parametrize("problem", ["attention", "exp_add", "argmax", "layer_norm"])
def test_a_part_of_the_bound_judges_like_all_of_it(problem: str) -> None:
    lazy, eager = planned(problem), planned(problem)
    assert len(lazy.plan.cases) == len(eager.plan.cases)
    verdicts = set()
    for turn, (case, same) in enumerate(zip(lazy.plan.cases, eager.plan.cases, strict=True)):
        units = [answer.unit for answer in same.answers]  # makes all runs
        tree, buffers = answer_off_by(same, units, _OFF[turn % len(_OFF)])
        mine, right = (
            judge_answer(lazy, case.number, tree, buffers),
            judge_answer(eager, same.number, tree, buffers),
        )
        for one, other in zip(mine.outputs, right.outputs, strict=True):
            # the size of an error within tolerance is known as far as it was asked for
            assert replace(one, units=0.0) == replace(other, units=0.0), (case.family, one, other)
            verdicts.add(one.error is not None)
    if lazy.plan.cases[0].answers[0].least is not None:
        assert verdicts == {True, False}


def test_an_answer_without_an_error_needs_no_run() -> None:
    referee = planned("exp_add")
    case = next(item for item in referee.plan.cases if item.family == "lengths")
    runs = case.answers[0].runs
    assert isinstance(runs, Perturbations)
    assert runs.done == 0
    units = [answer.unit_so_far for answer in case.answers]
    found = judge_answer(referee, case.number, *answer_off_by(case, units, 0.0))
    assert (found.right, runs.done) == (True, 0)


def test_what_is_known_so_far_only_grows() -> None:
    referee = planned("attention")
    for case in referee.plan.cases[:40]:
        (answer,) = case.answers
        runs = answer.runs
        assert isinstance(runs, Perturbations)
        before, own = answer.unit_so_far, answer.most_own_error
        while runs.once_more():
            assert bool((answer.unit_so_far >= before).all())
            assert answer.most_own_error <= own
            before, own = answer.unit_so_far, answer.most_own_error
        assert runs.done == PERTURBATIONS
        assert torch.equal(answer.unit, before)
        assert answer.own_error == own


def test_noise_of_large_arrays_is_repeated_and_never_in_step_with_a_row() -> None:
    ones = torch.ones(2, REPEATED)
    found = shifted(ones, 1e-3, torch.Generator().manual_seed(0), False)
    off = (found - 1).abs()
    assert found.shape == ones.shape
    assert 0.9e-3 < float(off.max()) <= 1e-3
    assert torch.equal(found[0], found[1])  # rows of just this length are
    rows = shifted(torch.ones(300, 8192), 1e-3, torch.Generator().manual_seed(0), False)
    assert len({row.numpy().tobytes() for row in rows}) == 300
