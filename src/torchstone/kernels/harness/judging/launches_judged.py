"""Recorded launches, judged: whether kernels wrote the answer, from inputs that nobody computed for them."""

from __future__ import annotations

from typing import Any

import torch

from torchstone.kernels.harness.calling.launch_records import revived_argument
from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.planning import REFUSED
from torchstone.kernels.harness.inputs.slender import SlenderPlanner
from torchstone.kernels.harness.judging import launch_origin as origin
from torchstone.kernels.harness.reference.running import (
    as_tensor,
    leaves_of,
    like,
    rebuilt,
    state_of,
)
from torchstone.kernels.harness.values import decode, plain_place


def twin(planner: SlenderPlanner, number: int) -> tuple[dict[str, Any], list[bytes]]:
    """A new case: the same but for the numbers of its arrays, which are those of another seed.

    Places and truths stay, from which a host may make sizes; where there is nothing else, they
    change, too. The number of the case is -1 where the reference does not take it.
    """
    case = planner.cases[number]
    leaves = leaves_of(case.inputs)
    tensors = [as_tensor(leaf) for leaf in leaves]
    shapes = [item.shape if item is not None else None for item in tensors]
    moving = [i for i in families.arrays(case.inputs) if _is_number(tensors[i])]
    moving = moving or families.arrays(case.inputs)
    for other in planner.cases:
        theirs = leaves_of(other.inputs)
        found = [as_tensor(leaf) for leaf in theirs]
        if other.family != "own" or other.seed == case.seed:
            continue
        if shapes == [item.shape if item is not None else None for item in found]:
            made = [theirs[i] if i in moving else leaf for i, leaf in enumerate(leaves)]
            break
    else:
        made = [_turned(leaf) if i in moving else leaf for i, leaf in enumerate(leaves)]
    try:
        planner._add("own", case.seed, list(rebuilt(case.inputs, made)))
    except REFUSED:
        return {"number": -1}, []
    return {"number": len(planner.cases) - 1}, []


def origin_of(
    planner: SlenderPlanner, header: dict[str, Any], buffers: list[bytes]
) -> dict[str, Any]:
    """Whether kernels wrote the answer, from what the case and its weights hold; with a twin,
    whether what they were given was moved there and not computed."""
    case = planner.cases[int(header["number"])]
    inputs = [as_tensor(leaf) for leaf in leaves_of(case.inputs)]
    given = [*inputs, *state_of(planner.reference.model(case.seed)).values()]
    given += [as_tensor(leaf) for leaf in leaves_of(planner.reference.arguments(case.seed))]
    ignored = {(launch, place) for launch, place in header["ignored"]}
    launches = _launches(header["launches"], buffers, ignored)
    answer = [decode(item, buffers[header["start"] :], plain_place) for item in header["answer"]]
    known = [item for item in given if item is not None]
    found = origin.unexplained(known, launches, answer)
    if found or not header["twins"]:
        return found
    twin = planner.cases[int(header["twin"])]
    others = [as_tensor(leaf) for leaf in leaves_of(twin.inputs)]
    pairs = [(a, b) for a, b in zip(inputs, others, strict=True) if a is not None and b is not None]
    moved = any(_is_number(a) for a, b in pairs if not torch.equal(a, b))
    twins = _launches(header["twins"], buffers, ignored)
    most = 0 if moved else origin.MOST_FOREIGN
    found = origin.computed_outside(pairs, list(zip(launches, twins, strict=True)), most)
    return found | ({"computed": True} if found else {})


def _is_number(tensor: torch.Tensor | None) -> bool:
    """No place and no truth."""
    return tensor is not None and (tensor.is_floating_point() or tensor.is_complex())


def _turned(leaf: Any) -> Any:
    """The same elements the other way round."""
    tensor = families.tensor_of(leaf)
    return like(leaf, tensor.flip(list(range(tensor.dim()))))


def _launches(
    trees: list[dict[str, Any]], buffers: list[bytes], ignored: set[tuple[int, int]]
) -> list[origin.Launch]:
    """Launches from the wire; what they do not depend on is left out."""

    def tensors(tree: dict[str, Any]) -> list[torch.Tensor]:
        values = map(as_tensor, leaves_of(revived_argument(tree, buffers, {})))
        return [item for item in values if item is not None]

    return [
        origin.Launch(
            [(place if "memory" in tree else -1, item)
             for place, tree in enumerate(launch["before"]) if (number, place) not in ignored
             for item in tensors(tree)],
            [item for tree in launch["after"] for item in tensors(tree)],
        )
        for number, launch in enumerate(trees)
    ]  # fmt: skip
