"""Training and evaluation: what changes between them, and what a call in training leaves behind."""

from __future__ import annotations

import copy
from typing import Any

import torch

from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.planning import Plan, add_case, list_cases
from torchstone.kernels.harness.inputs.sizing import add_resized
from torchstone.kernels.harness.inputs.slender import leading_group, stacked
from torchstone.kernels.harness.reference.running import (
    as_tensor,
    doubled,
    leaves_of,
    state_of,
)
from torchstone.kernels.harness.values import decode, plain_place
from torchstone.kernels.messages.facts import PlannedCase
from torchstone.kernels.messages.to_referee import Modes, WrongState
from torchstone.kernels.messages.trees import Tree

_OTHER_VALUES = ("negative",)
"""Families from which a second call in training is taken."""
_MOST_OTHER_SIZES = 4
"""Sizes that are changed for a call in evaluation."""
_STATE_TOLERANCE = 1e-4
"""Of running statistics, absolute and relative: sums of a batch in single precision, any order."""


def find_modes(plan: Plan) -> Modes:
    """Whether eval() gives another answer, and what a call in training leaves changed."""
    model = _in_training(plan, copy.deepcopy(plan.reference.model(0)))
    if not isinstance(model, torch.nn.Module) or not model.training:
        return Modes()
    before = {name: value.clone() for name, value in state_of(model).items()}
    inputs = plan.cases[0].inputs
    trained = leaves_of(plan.reference.run(model, inputs))
    changed = [k for k, v in state_of(model).items() if not torch.equal(v, before[k])]
    evaluated = leaves_of(plan.reference.run(model.eval(), inputs))
    pairs = [(as_tensor(a), as_tensor(b)) for a, b in zip(trained, evaluated, strict=True)]
    differs = any(a is not None and b is not None and not torch.equal(a, b) for a, b in pairs)
    mine = {item.family: item.number for item in reversed(plan.cases) if item.seed == 0}
    trained_on = [0, *(mine[name] for name in _OTHER_VALUES if name in mine)]
    listed = [list_cases(plan, number)[0] for number in trained_on]
    return Modes(differs, changed, listed, _other_sizes(plan))


def _in_training(plan: Plan, model: Any) -> Any:
    """The model as the problem makes it, where all else is judged in evaluation."""
    return model.train() if plan.reference.evaluates else model


def _other_sizes(plan: Plan) -> list[int]:
    """Cases in which one of the problem's sizes after the other is smaller."""
    found = []
    inputs = plan.cases[0].inputs
    for group in families.groups_of(inputs)[:_MOST_OTHER_SIZES]:
        size = families.prime_below(group.size)
        if add_resized(plan, "prime", 0, families.resized(inputs, group, size)):
            found.append(len(plan.cases) - 1)
    batch = leading_group(inputs)
    if batch is not None:  # too small to be cut
        wider = stacked(inputs, [plan.drawn[1]], batch, batch.size + 1)
        if add_resized(plan, "prime", 0, wider):
            found.append(len(plan.cases) - 1)
    return found


def evaluate_case(plan: Plan, number: int, trained: list[int]) -> PlannedCase:
    """A new case: the inputs of a case to the model in evaluation, after calls in training."""
    kept = dict(plan.reference._models)
    case = plan.cases[number]
    try:
        for double in (False, True):
            model = copy.deepcopy(plan.reference.model(0, double))
            model.load_state_dict(_first_state(plan, model))
            _train(plan, model, trained, double)
            plan.reference._models[0, double] = model.eval()
        add_case(plan, "own", 0, case.inputs, resized=case.resized)
    finally:
        plan.reference._models.update(kept)
    return list_cases(plan, len(plan.cases) - 1)[0]


def _train(plan: Plan, model: object, trained: list[int], double: bool = False) -> None:
    for number in trained:
        inputs = plan.cases[number].inputs
        plan.reference.run(model, doubled(inputs) if double else inputs, double=double)


def _first_state(plan: Plan, model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Weights and buffers as they are made, before any call, in the model's own formats."""
    made = plan.reference.made(0).state_dict()
    now = model.state_dict()
    return {name: value.to(now[name].dtype) for name, value in made.items()}


def judge_state(plan: Plan, trained: list[int], tree: Tree, buffers: list[bytes]) -> WrongState:
    """Names of the buffers that these calls in training should have changed otherwise."""
    model = _in_training(plan, plan.reference.made(0))
    _train(plan, model, trained)
    right, got = state_of(model), decode(tree, buffers, plain_place)
    return WrongState([
        name for name, value in right.items()
        if name not in got or not torch.allclose(got[name].double(), value.double(),
                                                 rtol=_STATE_TOLERANCE, atol=_STATE_TOLERANCE)
    ])  # fmt: skip
