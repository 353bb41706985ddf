"""Slender cases: one side short or long, all others of one to three.

What is costly in an interpreter is cheap here, so that every side of every problem passes the sizes
at which kernels change their ways: the first few, and those beyond 128, 256, 512 and 1024. Sides
that the problem's own inputs have at one, such as a batch, and sides that only the arguments of
the model know, such as the width of a layer, have their turn, too. Few of a kind, such as heads,
are doubled: four heads over two say nothing of eight over two.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from torchstone.kernels.harness.inputs import growing, scales
from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.enlarging import grow_inputs
from torchstone.kernels.harness.inputs.planning import REFUSED, Plan, add_case, planned_since
from torchstone.kernels.harness.reference.running import Values, leaves_of, like, rebuilt
from torchstone.kernels.messages.to_referee import Planned

SHORT = (2, 3, 5, 1)
LONG = (131, 257, 521, 1031)
_OTHERS = (2, 3)
"""What stands beside a side while it is short: the same for all its lengths, so that they compare."""
_LONG_OTHERS = (2, 1)
_AGAIN = (2, 4, 6)
"""Tried where the reference does not take that."""
_MOST_BATCH = 7
_MOST_ELEMENTS = 1 << 22
"""Of inputs: one side of a thousand beside short ones has some ten thousand."""


@dataclass(frozen=True, slots=True)
class Side:
    """One size of the problem: where the inputs have it, and where the model's arguments do."""

    group: families.Group
    arguments: tuple[int, ...] = ()
    batch: bool = False
    """Smaller than what may change as a rule; it leads all arrays that have it in front."""


@dataclass(frozen=True, slots=True)
class Made:
    """Inputs, and the arguments of the model that takes them."""

    inputs: Values
    init: Values


def plan_slender(plan: Plan, beyond: int = 0) -> Planned:
    """Few of a kind doubled, every side short, then every side long, beside short others.

    `beyond`: where one block holds so much, what lies past it is seen in a longer side alone.
    """
    start = len(plan.cases)
    sides = _find_sides(plan)
    for number, few in enumerate(_find_few(plan), len(sides)):
        _add_slender(plan, [*sides, few], len(sides), 2 * few.group.size, 0, number)
    longer = (growing.prime_above(beyond),) if beyond >= LONG[-1] else ()
    for turn, size in enumerate((*SHORT, *LONG, *longer)):
        for number, side in enumerate(sides):
            if not side.batch or size <= _MOST_BATCH:
                _add_slender(plan, sides, number, size, turn)
    return planned_since(plan, start)


def _find_sides(plan: Plan) -> list[Side]:
    """All sizes that may change: of the inputs, of the model's arguments, and the batch."""
    inputs = plan.drawn[0]
    groups = {group.size: group for group in families.groups_of(inputs)}
    named: dict[int, list[int]] = {}
    for i, value in enumerate(plan.reference.init):
        if type(value) is int and value >= families.SMALLEST_GROUP:
            named.setdefault(value, []).append(i)
    batch = leading_group(inputs)
    found = [Side(batch, batch=True)] if batch is not None and batch.size not in groups else []
    found += [Side(group, tuple(named.pop(size, ()))) for size, group in groups.items()]
    return found + [Side(families.Group(size, ()), tuple(at)) for size, at in named.items()]


def _find_few(plan: Plan) -> list[Side]:
    """Sizes of two to four that the outputs have as well, and not in front."""
    inputs = plan.drawn[0]
    leaves = leaves_of(inputs)
    places: dict[int, list[tuple[int, int]]] = {}
    for i in families.arrays(inputs):
        for dim, size in enumerate(families.tensor_of(leaves[i]).shape):
            if dim and 1 < size < families.SMALLEST_GROUP:
                places.setdefault(size, []).append((i, dim))
    made = Made(inputs, list(plan.reference.init))
    own = _shapes_of(plan, inputs, plan.reference.remade(made.init, 0))
    found = []
    for size, where in places.items():
        side = Side(families.Group(size, tuple(where)))
        double = _change_side(plan, made, side, 2 * size, 0)
        if double is not None and all(_doubles(a, b) for a, b in zip(own, double[1], strict=True)):
            found.append(side)
    return found


def _add_slender(
    plan: Plan, sides: list[Side], number: int, size: int, turn: int, group: int | None = None
) -> None:
    seed = turn % plan.seeds
    made = Made(plan.drawn[seed], list(plan.reference.init))
    for i, side in enumerate(sides):
        if i != number and not side.batch:
            short = _OTHERS[number % 2] if size in SHORT else _LONG_OTHERS[(turn + i) % 2]
            short = short if group is None else 1
            made = _shorten_side(plan, made, side, short, seed)
    grown = _resize_side(plan, made, sides[number], size, seed)
    if grown is None:
        return
    remade, places = plan.reference.remade(grown.init, seed), sides[number].group.places
    rising = scales.rising(grown.inputs, places[0][0]) if size > LONG[-1] and places else []
    for inputs in (*rising, grown.inputs):
        case = add_case(
            plan, families.SLENDER, remade, inputs, finite=True, calm=inputs is not grown.inputs,
            resized=True, group=number if group is None else group, size=size,
        )  # fmt: skip
        if case is not None:
            return


def _shorten_side(plan: Plan, made: Made, side: Side, short: int, seed: int) -> Made:
    """One side as short as wanted, or as the reference takes it."""
    sizes = [size for size in (short, *_AGAIN) if size < side.group.size]
    tries = (_resize_side(plan, made, side, size, seed) for size in sizes)
    return next((item for item in tries if item is not None), made)


def _resize_side(plan: Plan, made: Made, side: Side, size: int, seed: int) -> Made | None:
    """One side of another size; None where the reference does not take it.

    Nor where it takes it by accident: three halved are two and one, which happen to fit. The
    sizes of outputs must follow the side as they do when it is doubled.
    """
    if size == side.group.size:
        return made
    found, double = (_change_side(plan, made, side, n, seed) for n in (size, 2 * side.group.size))
    if found is None or double is None:
        return found[0] if found is not None else None
    before = _shapes_of(plan, made.inputs, plan.reference.remade(made.init, seed))
    own = side.group.size
    sound = all(
        len(a) == len(b) == len(c)
        and all((y - x) * (size - own) == (z - x) * own for x, y, z in zip(a, b, c, strict=True))
        for a, b, c in zip(before, double[1], found[1], strict=True)
    )
    return found[0] if sound else None


def _change_side(
    plan: Plan, made: Made, side: Side, size: int, seed: int
) -> tuple[Made, list[torch.Size]] | None:
    """One side of another size, with the shapes of the outputs, if the reference takes it."""
    init = [size if i in side.arguments else value for i, value in enumerate(made.init)]
    group = side.group
    if growing.elements_after(made.inputs, group, size) > _MOST_ELEMENTS:
        return None  # a size that several sides of one array have
    if side.batch:
        more = [plan.drawn[(seed + turn) % plan.seeds] for turn in range(1, size)]
        versions = [stacked(made.inputs, more, group, size)]
    elif size < group.size or not group.places:
        versions = [families.resized(made.inputs, group, size)]
    else:
        versions = grow_inputs(plan, made.inputs, group, size, seed)
    for inputs in versions:
        try:
            shapes = _shapes_of(plan, inputs, plan.reference.remade(init, seed))
        except REFUSED:
            continue
        return Made(inputs, init), shapes
    return None


def _shapes_of(plan: Plan, inputs: Values, seed: int) -> list[torch.Size]:
    """Of the outputs; not computed where that can be told without."""
    found = plan.reference.shapes_without_computing(inputs, seed)
    return [item.shape for item in plan.oracle.outputs(inputs, seed)] if found is None else found


def _doubles(before: torch.Size, after: torch.Size) -> bool:
    """One size is twice what it was, and no other has changed: it is not a window that slides."""
    changed = [(a, b) for a, b in zip(before, after, strict=False) if a != b]
    return len(before) == len(after) and len(changed) == 1 and changed[0][1] == 2 * changed[0][0]


def leading_group(inputs: Values) -> families.Group | None:
    """The first size of the first array, where it is small, in all arrays that begin with it.

    A size of one may also be there to be repeated: not in what has another one, or fewer sides.
    """
    leaves, which = leaves_of(inputs), families.arrays(inputs)
    shapes = {i: families.tensor_of(leaves[i]).shape for i in which}
    first = shapes[which[0]] if which else ()
    if not first or first[0] >= families.SMALLEST_GROUP or not first[0]:
        return None
    tied = [i for i in which if shapes[i] and shapes[i][0] == first[0]]
    if first[0] == 1:
        tied = [i for i in tied if len(shapes[i]) == len(first) and 1 not in shapes[i][1:]]
        if which[0] not in tied or [shapes[i] for i in tied[1:]] == [first]:
            return None  # one array beside its like: a second batch, or repeated for each of them
    return families.Group(first[0], tuple((i, 0) for i in tied))


def stacked(inputs: Values, more: list[Values], group: families.Group, size: int) -> Values:
    """The inputs with their first side made of those of other seeds, cut as they are."""
    leaves = leaves_of(inputs)
    for leaf, _ in group.places:
        mine = families.tensor_of(leaves[leaf])
        parts = [mine]
        for other in more:
            part = families.tensor_of(leaves_of(other)[leaf])
            for dim, length in enumerate(mine.shape[1:], 1):
                part = part.narrow(dim, 0, min(length, part.shape[dim]))
            parts.append(part)
        joined = torch.cat(parts).narrow(0, 0, size).contiguous()
        leaves[leaf] = like(leaves[leaf], joined)
    return list(rebuilt(inputs, leaves))
