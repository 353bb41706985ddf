"""Larger inputs are of the same kind as the problem's own, and the cheapest are tried first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from torchstone.kernels.harness.inputs.growing import (
    APART,
    elements_after,
    grown,
    larger_sizes,
    prime_above,
)
from torchstone.kernels.harness.inputs.value_families import Group, groups_of
from torchstone.kernels.messages.facts import PlannedCase
from torchstone.kernels.sessions.larger import MOST_WORK, Larger, powers_of


def first_grown(inputs: list[Any], size: int, number: int = 0) -> list[Any]:
    return grown(inputs, groups_of(inputs)[number], size, 0)[0]


def test_sizes_go_beyond_two_and_three_times_and_a_usual_block() -> None:
    assert larger_sizes(83) == (167, 251, 1031)
    assert larger_sizes(400) == (801, 1201)
    assert [prime_above(number) for number in (1, 2, 7, 1024)] == [3, 3, 11, 1031]


def test_new_numbers_stay_within_their_line_and_are_new() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(7, 11, generator=generator) + torch.arange(7.0)[:, None] * 100
    (wide,) = first_grown([x], 35, 1)
    assert wide.shape == (7, 35)
    assert bool((wide >= x.amin(1, keepdim=True)).all())
    assert bool((wide <= x.amax(1, keepdim=True)).all())
    # a later part holds the largest number of some row: a running maximum has to rise
    assert bool((wide.argmax(1) >= 11).any())
    assert float(torch.isin(wide, x).float().mean()) < 0.25


def test_equal_sizes_grow_together_in_every_framework() -> None:
    q, k = np.ones((3, 9), np.float32), torch.ones(9, 9)
    wide, square = first_grown([q, k], 19, 1)
    assert isinstance(wide, np.ndarray)
    assert (wide.shape, tuple(square.shape)) == ((3, 19), (19, 19))
    assert elements_after([q, k], Group(9, ((0, 1), (1, 0), (1, 1))), 18) == 3 * 18 + 18 * 18


def test_what_has_an_order_keeps_it() -> None:
    offsets = torch.tensor([0, 2, 2, 5, 9, 12])
    (longer,) = grown([offsets], groups_of([offsets])[0], 13, 0)[-1:][0]
    assert bool((longer.diff() >= 0).all())
    order = torch.randperm(12)
    (longer,) = first_grown([order], 25)
    assert sorted(longer.tolist()) == list(range(25))
    mask = torch.ones(8, 8, dtype=torch.bool).tril()
    (longer,) = first_grown([mask], 17)
    assert bool(longer.diagonal().all())
    assert not longer[0, 8:].any()


def test_places_reach_into_what_is_new_or_stay_where_they_were() -> None:
    table, index = torch.randn(17, 6), torch.randint(0, 17, (40,))
    far, near = grown([table, index], groups_of([table, index])[0], 53, 0)
    assert far[0].shape == near[0].shape == (53, 6)
    assert 17 <= int(far[1].max()) < 53
    assert int(far[1].min()) >= 0
    assert torch.equal(near[1], index)


def case(group: int, *sizes: int) -> PlannedCase:
    return PlannedCase(0, "larger", 0, "", sizes=list(sizes), group=group)


def test_a_step_of_each_comes_first_and_the_dearest_not_at_all() -> None:
    cases = [case(0, 45, 83), case(1, 22, 167), case(0, 67, 83), case(1, 22, 251),
             case(0, 1031, 83), case(1, 22, 1031)]  # fmt: skip
    # the rows cost, the width does not
    larger = Larger.plan(cases, [((22, 83), 300), ((1, 83), 14), ((22, 1), 300)])
    taken = []
    while (item := larger.take()) is not None:
        rows, width = item.sizes
        taken.append((rows, width))
        larger.done(item, 300 * rows // 22)
    assert taken == [(22, 167), (45, 83), (22, 251), (67, 83), (22, 1031)]
    assert larger.left_out == 1
    assert 0 < larger.left < MOST_WORK


def test_what_is_compiled_gets_all_of_them() -> None:
    larger = Larger.plan([case(0, 45, 9), case(0, 1031, 9), case(-1, 99, 99)], [((22, 9), 0)])
    taken = 0
    while (item := larger.take()) is not None:
        larger.done(item, 0)
        taken += 1
    assert (taken, larger.left_out) == (3, 0)


def test_what_no_other_size_shows_does_not_wait_for_the_steps_of_its_size() -> None:
    cases = [case(0, 45, 9), case(0, 1031, 9), case(APART, 4099, 4)]
    larger = Larger.plan(cases, [((22, 9), 300), ((22, 5), 300)])
    taken = []
    while (item := larger.take()) is not None:
        taken.append(item.group)
        larger.done(item, 600 if item.group == 0 else 3000)
    assert taken[:2] == [0, APART]


@pytest.mark.parametrize("work", [10, 400])
def test_work_that_grows_faster_than_the_size_is_expected_to_go_on_so(work: int) -> None:
    larger = Larger.plan([case(0, 40)], [((10,), work)])
    assert larger.expected(case(0, 20)) == 2 * work
    larger.done(case(0, 20), 4 * work)
    assert larger.expected(case(0, 40)) == pytest.approx(16 * work)


def test_what_was_made_smaller_beside_it_makes_less_work_where_that_was_seen() -> None:
    seen = [((10, 10), 800), ((1, 10), 80), ((10, 1), 800), ((10, 9), 400)]
    # the edge of a block between 9 and 10 says nothing of how work grows
    assert powers_of(seen) == [pytest.approx(1.0), 0.0]
    larger = Larger.plan([case(1, 5, 40)], seen)
    assert larger.expected(case(1, 5, 40)) == pytest.approx(1600)
    assert Larger.plan([case(1, 5, 40)], seen[:1]).expected(case(1, 5, 40)) == 3200


def test_numbers_are_no_places_because_another_side_was_cut() -> None:
    """Ten bins in 7×31: cut to 7×5 the numbers stay below 5, and could be taken for rows."""
    own = [torch.arange(7 * 31).reshape(7, 31) % 10]
    cut = [own[0][:, :5] % 5]
    group = groups_of(own)[0]
    assert (group.size, int(cut[0].max())) == (7, 4)
    for version in grown(cut, group, 29, 0, own):
        assert int(version[0].max()) == 4
    assert int(grown(cut, group, 29, 0)[0][0].max()) > 9
