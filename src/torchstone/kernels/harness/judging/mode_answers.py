"""Training and evaluation: what changes between them, and what a call in training leaves behind."""

from __future__ import annotations

import copy
from typing import Any

import torch

from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.slender import SlenderPlanner, leading_group, stacked
from torchstone.kernels.harness.reference.running import (
    as_tensor,
    doubled,
    leaves_of,
    state_of,
)
from torchstone.kernels.harness.values import decode, plain_place

_OTHER_VALUES = ("negative",)
"""Families from which a second call in training is taken."""
_MOST_OTHER_SIZES = 4
"""Sizes that are changed for a call in evaluation."""
_STATE_TOLERANCE = 1e-4
"""Of running statistics, absolute and relative: sums of a batch in single precision, any order."""


def modes(planner: SlenderPlanner) -> dict[str, Any]:
    """Whether eval() gives another answer, and what a call in training leaves changed."""
    model = _in_training(planner, copy.deepcopy(planner.reference.model(0)))
    if not isinstance(model, torch.nn.Module) or not model.training:
        return {"evaluates": False, "changed": [], "trained": [], "others": []}
    before = {name: value.clone() for name, value in state_of(model).items()}
    inputs = planner.cases[0].inputs
    trained = leaves_of(planner.reference.run(model, inputs))
    changed = [k for k, v in state_of(model).items() if not torch.equal(v, before[k])]
    evaluated = leaves_of(planner.reference.run(model.eval(), inputs))
    pairs = [(as_tensor(a), as_tensor(b)) for a, b in zip(trained, evaluated, strict=True)]
    differs = any(a is not None and b is not None and not torch.equal(a, b) for a, b in pairs)
    mine = {item.family: item.number for item in reversed(planner.cases) if item.seed == 0}
    trained_on = [0, *(mine[name] for name in _OTHER_VALUES if name in mine)]
    return {
        "evaluates": differs, "changed": changed,
        "trained": [planner._list(number)[0] for number in trained_on],
        "others": _other_sizes(planner),
    }  # fmt: skip


def _in_training(planner: SlenderPlanner, model: Any) -> Any:
    """The model as the problem makes it, where all else is judged in evaluation."""
    return model.train() if planner.reference.evaluates else model


def _other_sizes(planner: SlenderPlanner) -> list[int]:
    """Cases in which one of the problem's sizes after the other is smaller."""
    found = []
    inputs = planner.cases[0].inputs
    for group in families.groups_of(inputs)[:_MOST_OTHER_SIZES]:
        size = families.prime_below(group.size)
        if planner._add_resized("prime", 0, families.resized(inputs, group, size)):
            found.append(len(planner.cases) - 1)
    batch = leading_group(inputs)
    if batch is not None:  # too small to be cut
        wider = stacked(inputs, [planner._own_inputs(1)], batch, batch.size + 1)
        if planner._add_resized("prime", 0, wider):
            found.append(len(planner.cases) - 1)
    return found


def evaluated(planner: SlenderPlanner, number: int, trained: list[int]) -> dict[str, Any]:
    """A new case: the inputs of a case to the model in evaluation, after calls in training."""
    kept = dict(planner.reference._models)
    case = planner.cases[number]
    try:
        for double in (False, True):
            model = copy.deepcopy(planner.reference.model(0, double))
            model.load_state_dict(_first_state(planner, model))
            _train(planner, model, trained, double)
            planner.reference._models[0, double] = model.eval()
        planner._add("own", 0, case.inputs)
    finally:
        planner.reference._models.update(kept)
    planner.cases[-1].resized = case.resized
    return planner._list(len(planner.cases) - 1)[0]


def _train(planner: SlenderPlanner, model: Any, trained: list[int], double: bool = False) -> None:
    for number in trained:
        inputs = planner.cases[number].inputs
        planner.reference.run(model, doubled(inputs) if double else inputs, double=double)


def _first_state(planner: SlenderPlanner, model: Any) -> dict[str, Any]:
    """Weights and buffers as they are made, before any call, in the model's own formats."""
    made = planner.reference.made(0).state_dict()
    now = model.state_dict()
    return {name: value.to(now[name].dtype) for name, value in made.items()}


def judge_state(
    planner: SlenderPlanner, trained: list[int], tree: dict[str, Any], buffers: list[bytes]
) -> dict[str, Any]:
    """Names of the buffers that these calls in training should have changed otherwise."""
    model = _in_training(planner, planner.reference.made(0))
    _train(planner, model, trained)
    right, got = state_of(model), decode(tree, buffers, plain_place)
    return {"wrong": [
        name for name, value in right.items()
        if name not in got or not torch.allclose(got[name].double(), value.double(),
                                                 rtol=_STATE_TOLERANCE, atol=_STATE_TOLERANCE)
    ]}  # fmt: skip
