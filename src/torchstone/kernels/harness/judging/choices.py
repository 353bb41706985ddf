"""Outputs of places: where another place may be given, because it holds the same value."""

from __future__ import annotations

import torch

from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.cases import Case
from torchstone.kernels.harness.inputs.planning import Plan
from torchstone.kernels.harness.judging import judge
from torchstone.kernels.harness.judging.judge import Choice
from torchstone.kernels.harness.reference.running import (
    leaves_of,
    like,
    rebuilt,
)

_ORDERS = 8
"""Orders of a line in which a reference that picks by position would have to pick alike by luck."""


def chosen_places(plan: Plan, output: int, case: Case, got: torch.Tensor) -> torch.Tensor | None:
    """Where another place holds the same value as the reference's place, and may be given.

    None where rounding decides what is chosen.
    """
    leaves = leaves_of(case.inputs)
    for choice in plan.choices:
        if choice.output != output:
            continue
        if plan.ties_fixed:
            return torch.zeros(got.shape, dtype=torch.bool)
        values = families.tensor_of(leaves[choice.leaf])
        mine = judge.picked_by(values, got, choice.dim)
        right = judge.picked_by(values, case.answers[output].reference, choice.dim)
        if mine is None or right is None:
            return torch.zeros(got.shape, dtype=torch.bool)
        equal: torch.Tensor = mine == right
        if not bool(equal.all()):
            equal |= _chosen_by_position(plan, choice, case, mine)
        equal &= _distinct(got, choice.dim, mine.dim())
        return equal.reshape(got.shape)
    return None


def _chosen_by_position(plan: Plan, choice: Choice, case: Case, mine: torch.Tensor) -> torch.Tensor:
    """Where the candidate picks the extreme of the input and the reference picks by position.

    What it compares has become equal there, as probabilities that underflow to zero: with the
    line in another order it does not pick the same elements again.
    """
    leaves = leaves_of(case.inputs)
    leaf = leaves[choice.leaf]
    values = families.tensor_of(leaf)
    picked = case.answers[choice.output].reference
    moved = torch.zeros(mine.shape, dtype=torch.bool)
    for turn in range(_ORDERS):
        generator = torch.Generator().manual_seed(turn)
        order = torch.randperm(values.shape[choice.dim], generator=generator)
        leaves[choice.leaf] = like(leaf, values.index_select(choice.dim, order))
        given = list(rebuilt(case.inputs, leaves))
        found = plan.oracle.outputs(given, case.seed)[choice.output]
        moved |= (order[found.long()] != picked).reshape(mine.shape)
    best = values.topk(mine.shape[choice.dim], dim=choice.dim, largest=choice.largest).values
    followed: torch.Tensor = (mine == best) & moved
    return followed


def _distinct(places: torch.Tensor, dim: int, dims: int) -> torch.Tensor:
    """False along every line in which a place stands twice."""
    if places.dim() == dims - 1:
        return torch.ones((), dtype=torch.bool)
    ordered = places.sort(dim=dim).values
    twice = (ordered.diff(dim=dim) == 0).any(dim=dim, keepdim=True)
    return ~twice
