"""Settings and ways to change weights under which the reference answers as it should."""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch

from torchstone.kernels.harness.calling import bursts
from torchstone.kernels.harness.calling import weight_changes as weights
from torchstone.kernels.harness.inputs.planning import REFUSED, Plan
from torchstone.kernels.harness.reference.running import (
    as_tensor,
    leaves_of,
)
from torchstone.kernels.messages.to_referee import Settings, Ways, WeightChange


def find_ways(plan: Plan) -> Ways:
    """In which ways the weights may change between calls, each with the seed of new ones.

    Only those after which the reference itself answers like a model made with them. `moves` says whether the old
    weights would have been seen: seeds are tried until that is so.
    """
    found = []
    if plan.reference.state(weights.CHANGED):
        model = copy.deepcopy(plan.reference.model(weights.CHANGED))
        for turn, way in enumerate(weights.WAYS):
            first = (weights.CHANGED + 1 + turn) % plan.seeds
            others = [seed for seed in range(plan.seeds) if seed not in (first, weights.CHANGED)]
            for seed in (first, *others):
                followed = _follow(plan, model, seed, way)
                if not followed.right:
                    break
                if followed.moved or seed == (first, *others)[-1]:
                    found.append(WeightChange(way, seed, followed.moved))
                    break
    return Ways(found)


class Followed(NamedTuple):
    """What other weights did to the reference: it answers as one made with them, and another way than before."""

    right: bool
    moved: bool = False


def find_settings(plan: Plan) -> Settings:
    """Under which settings a model may be called: those in which the reference stays as it is."""
    right, model = plan.oracle.outputs(plan.cases[0].inputs, 0), plan.reference.model(0)
    found = []
    for name in bursts.SETTINGS:
        given = copy.deepcopy([(model, plan.cases[0].inputs)])
        (answer,) = bursts.in_a_row(given, name)
        if isinstance(answer, Exception):
            continue
        mine = map(as_tensor, leaves_of(answer))
        if all(a is not None and torch.equal(a.nan_to_num(), b.nan_to_num())
               for a, b in zip(mine, right, strict=True)):  # fmt: skip
            found.append(name)
    return Settings(found)


def _follow(plan: Plan, model: object, seed: int, way: str) -> Followed:
    def answer(asked: object) -> list[torch.Tensor | None]:
        return list(map(as_tensor, leaves_of(plan.reference.run(asked, inputs))))

    inputs = plan.drawn[seed]
    state = {name: value.clone() for name, value in plan.reference.state(seed).items()}
    try:
        before = answer(model)
        if not weights.put(model, state, way):
            return Followed(False)
        mine, right = answer(model), answer(plan.reference.model(seed))
    except REFUSED:
        return Followed(False)
    return Followed(_equal(mine, right), not _equal(before, right))


def _equal(one: list[torch.Tensor | None], other: list[torch.Tensor | None]) -> bool:
    return all(
        a is not None and b is not None and torch.equal(a, b)
        for a, b in zip(one, other, strict=True)
    )
