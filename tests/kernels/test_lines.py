"""Lines with a shape: slow ramps, zeros of both signs, infinities; and whole numbers at their ends."""

from __future__ import annotations

import numpy as np
import torch

from torchstone.kernels.harness.inputs import lines, whole
from torchstone.kernels.harness.inputs.growing import ramped
from torchstone.kernels.harness.inputs.value_families import Group, power_below, tensor_of

ROWS = torch.randn(24, 31, generator=torch.Generator().manual_seed(0))


def shaped(x: torch.Tensor, turn: int = 0) -> torch.Tensor:
    return tensor_of(lines.lined([x], turn)[0][0])


def test_a_running_maximum_grows_by_little() -> None:
    rises = [row for row in shaped(ROWS) if bool((row.diff() > 0).all())]
    falls = [row for row in shaped(ROWS) if bool((row.diff() < 0).all())]
    assert rises
    assert falls
    assert all(0 < float(row.max() - row.min()) < 0.1 for row in (*rises, *falls))


def test_equal_zeros_have_either_sign_first() -> None:
    firsts = set()
    for row in shaped(ROWS):
        zeros = row[row == 0]
        if 0 < zeros.numel() < row.numel() or bool((row == 0).all()):
            signs = torch.signbit(zeros)
            assert bool(signs.any())
            assert not bool(signs.all())
            firsts.add(bool(signs[0]))
    assert firsts == {True, False}


def test_the_turn_chooses_the_array_and_the_side() -> None:
    q, k = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    assert lines.sides([q, torch.arange(9), k]) == [(0, 2), (2, 2), (0, 1), (2, 1)]
    one, _, two = lines.lined([q, torch.arange(9), k], 3)[0]
    assert torch.equal(one, q)
    assert not torch.equal(two, k)
    assert lines.lined([torch.arange(5)], 0) == []
    assert isinstance(lines.lined([np.ones((4, 6), np.float32)], 1)[0][0], np.ndarray)


def test_matrices_of_keys_rise_as_a_whole_when_they_grow() -> None:
    k = torch.randn(1, 2, 47, 8)
    (made,) = ramped([k], Group(47, ((0, 2),)), 0)
    first = made[0, 0]
    assert torch.equal(first, first[:, :1].expand(47, 8))
    rise = first[:, 0].diff()
    assert bool((rise[:14] > 0).all())
    assert bool((rise[16:] < 0).all())
    # taken with the other sign it passes its start, too
    assert float(first[-1, 0]) < float(first[0, 0]) < float(first[:, 0].max())


def test_half_of_the_lines_stay_as_they_are() -> None:
    (made,) = ramped([ROWS], Group(31, ((0, 1),)), 0)
    same = (made == ROWS).all(dim=1)
    assert same.tolist() == [i % 4 > 1 for i in range(24)]


def test_masked_lines_are_whole_or_have_one_finite_number() -> None:
    found = lines.masked([ROWS], 0)
    assert found is not None
    (x,), poison = found
    finite = torch.isfinite(x).sum(dim=1).tolist()
    assert {0, 1, 31} <= set(finite)
    alone = x[torch.isfinite(x).sum(dim=1) == 0]
    assert bool((alone == float("inf")).all(dim=1).any())
    assert bool((alone == -float("inf")).all(dim=1).any())
    assert bool(((x == float("inf")).sum(dim=1) == 1).any())
    (finite_again,) = poison.put([ROWS], poison.finite(0))
    assert bool(torch.isfinite(finite_again).all())
    assert torch.equal(finite_again[torch.isfinite(x)], ROWS[torch.isfinite(x)])
    assert lines.masked([torch.arange(4)], 0) is None


def test_whole_numbers_go_to_the_ends_of_what_the_problem_shows() -> None:
    draws = [[torch.tensor([[-3, 4], [0, 1]]), torch.tensor([[7], [5]])],
             [torch.tensor([[-2, 9], [0, 1]]), torch.tensor([[2], [5]])]]  # fmt: skip
    ranges = whole.ranges_of([list(draw) for draw in draws])
    assert ranges == {0: (-3, 9), 1: (2, 7)}
    seen = set()
    for turn in range(4):
        a, b = whole.extreme(list(draws[0]), ranges, turn)
        assert a.unique().numel() == b.unique().numel() == 1
        seen.add((int(a[0, 0]), int(b[0, 0])))
    assert seen == {(-3, 2), (-3, 7), (9, 2), (9, 7)}
    a, b = whole.extreme(list(draws[0]), ranges, 4)
    assert a.tolist() == [[-3, 9], [-3, 9]]


def test_places_repeat_only_where_they_do_in_the_problem() -> None:
    index = torch.tensor([3, 1, 3, 0, 2])
    made = whole.repeated([torch.ones(4), index], {1: (0, 3)}, 0)
    assert made is not None
    assert made[1].tolist() == [3] * 5
    # two different experts for every token: each token still has two
    experts = torch.tensor([[0, 2], [1, 0], [0, 1], [2, 1]])
    made = whole.repeated([torch.ones(4), experts], {1: (0, 2)}, 1)
    assert made is not None
    assert made[1].tolist() == [[2, 1]] * 4
    for kept in (torch.randperm(6), torch.tensor([0, 2, 2, 5])):
        assert whole.repeated([kept], {0: (0, 5)}, 0) is None


def test_powers_of_two() -> None:
    assert [power_below(n) for n in (2, 3, 5, 64, 65, 83)] == [1, 2, 4, 32, 64, 64]
