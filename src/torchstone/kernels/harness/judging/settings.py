"""Settings and ways to change weights under which the reference answers as it should."""

from __future__ import annotations

import copy
from typing import Any

import torch

from torchstone.kernels.harness.calling import bursts, weights
from torchstone.kernels.harness.inputs.planning import REFUSED
from torchstone.kernels.harness.inputs.slender import SlenderPlanner
from torchstone.kernels.harness.reference.running import (
    as_tensor,
    leaves_of,
)


def ways(planner: SlenderPlanner) -> dict[str, Any]:
    """In which ways the weights may change between calls, each with the seed of new ones.

    Only those after which the reference itself answers like a model made with them.
    """
    found = []
    if planner.reference.state(weights.CHANGED):
        model = copy.deepcopy(planner.reference.model(weights.CHANGED))
        for turn, way in enumerate(weights.WAYS):
            seed = (weights.CHANGED + 1 + turn) % planner.seeds
            if _follows(planner, model, seed, way):
                found.append({"way": way, "seed": seed})
    return {"ways": found}


def settings(planner: SlenderPlanner) -> dict[str, Any]:
    """Under which settings a model may be called: those in which the reference stays as it is."""
    right, model = planner.oracle.outputs(planner.cases[0].inputs, 0), planner.reference.model(0)
    found = []
    for name in bursts.SETTINGS:
        given = copy.deepcopy([(model, planner.cases[0].inputs)])
        (answer,) = bursts.in_a_row(given, name)
        if isinstance(answer, Exception):
            continue
        mine = map(as_tensor, leaves_of(answer))
        if all(a is not None and torch.equal(a.nan_to_num(), b.nan_to_num())
               for a, b in zip(mine, right, strict=True)):  # fmt: skip
            found.append(name)
    return {"settings": found}


def _follows(planner: SlenderPlanner, model: Any, seed: int, way: str) -> bool:
    def answer(asked: Any) -> list[torch.Tensor | None]:
        return list(map(as_tensor, leaves_of(planner.reference.run(asked, inputs))))

    inputs = planner._own_inputs(seed)
    state = {name: value.clone() for name, value in planner.reference.state(seed).items()}
    try:
        if not weights.put(model, state, way):
            return False
        mine, right = answer(model), answer(planner.reference.model(seed))
    except REFUSED:
        return False
    return all(
        a is not None and b is not None and torch.equal(a, b)
        for a, b in zip(mine, right, strict=True)
    )
