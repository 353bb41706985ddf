"""Recorded launches, judged: whether kernels wrote the answer, from inputs that nobody computed for them."""

from __future__ import annotations

import torch

from torchstone.kernels.harness.calling.launch_records import revived_argument
from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.planning import REFUSED, Plan, add_case
from torchstone.kernels.harness.judging import launch_origin as origin
from torchstone.kernels.harness.reference.running import (
    as_tensor,
    leaves_of,
    like,
    rebuilt,
    state_of,
)
from torchstone.kernels.harness.values import decode, plain_place
from torchstone.kernels.messages.to_referee import (
    JudgeOrigin,
    LaunchTrees,
    OriginFacts,
    TwinCase,
)
from torchstone.kernels.messages.trees import Tree


def make_twin(plan: Plan, number: int) -> TwinCase:
    """A new case: the same but for the numbers of its arrays, which are those of another seed.

    Places and truths stay, from which a host may make sizes; where there is nothing else, they
    change, too. The number of the case is -1 where the reference does not take it.
    """
    case = plan.cases[number]
    leaves = leaves_of(case.inputs)
    tensors = [as_tensor(leaf) for leaf in leaves]
    shapes = [item.shape if item is not None else None for item in tensors]
    moving = [i for i in families.arrays(case.inputs) if _is_number(tensors[i])]
    moving = moving or families.arrays(case.inputs)
    for other in plan.cases:
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
        add_case(plan, "own", case.seed, list(rebuilt(case.inputs, made)))
    except REFUSED:
        return TwinCase(-1)
    return TwinCase(len(plan.cases) - 1)


def judge_origin(plan: Plan, question: JudgeOrigin, buffers: list[bytes]) -> OriginFacts:
    """Whether kernels wrote the answer, from what the case and its weights hold; with a twin,
    whether what they were given was moved there and not computed."""
    case = plan.cases[question.number]
    inputs = [as_tensor(leaf) for leaf in leaves_of(case.inputs)]
    given = [*inputs, *state_of(plan.reference.model(case.seed)).values()]
    given += [as_tensor(leaf) for leaf in leaves_of(plan.reference.arguments(case.seed))]
    ignored = set(question.ignored)
    launches = _launches(question.launches, buffers, ignored)
    answer = [decode(item, buffers[question.start :], plain_place) for item in question.answer]
    known = [item for item in given if item is not None]
    found = origin.find_unexplained(known, launches, answer)
    if found is not None or not question.twins:
        return found or OriginFacts()
    twin = plan.cases[question.twin]
    others = [as_tensor(leaf) for leaf in leaves_of(twin.inputs)]
    pairs = [(a, b) for a, b in zip(inputs, others, strict=True) if a is not None and b is not None]
    moved = any(_is_number(a) for a, b in pairs if not torch.equal(a, b))
    twins = _launches(question.twins, buffers, ignored)
    most = 0 if moved else origin.MOST_FOREIGN
    computed = origin.find_computed(pairs, list(zip(launches, twins, strict=True)), most)
    return computed or OriginFacts()


def _is_number(tensor: torch.Tensor | None) -> bool:
    """No place and no truth."""
    return tensor is not None and (tensor.is_floating_point() or tensor.is_complex())


def _turned(leaf: object) -> object:
    """The same elements the other way round."""
    tensor = families.tensor_of(leaf)
    return like(leaf, tensor.flip(list(range(tensor.dim()))))


def _launches(
    trees: list[LaunchTrees], buffers: list[bytes], ignored: set[tuple[int, ...]]
) -> list[origin.Launch]:
    """Launches from the wire; what they do not depend on is left out."""

    def tensors(tree: Tree) -> list[torch.Tensor]:
        values = map(as_tensor, leaves_of(revived_argument(tree, buffers, {})))
        return [item for item in values if item is not None]

    return [
        origin.Launch(
            [(place if tree.memory >= 0 else -1, item)
             for place, tree in enumerate(launch.before) if (number, place) not in ignored
             for item in tensors(tree)],
            [item for tree in launch.after for item in tensors(tree)],
        )
        for number, launch in enumerate(trees)
    ]  # fmt: skip
