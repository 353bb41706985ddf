"""Cases beyond the problem's own sizes: longer, whole blocks, sums that outgrow a format, every length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchstone.kernels.harness.inputs import growing, scales, whole
from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.planning import (
    REFUSED,
    SMALL,
    SMALLEST,
    Plan,
    accept_inputs,
    add_case,
    add_larger,
    cut_inputs,
    holds_whole_numbers,
    planned_since,
)
from torchstone.kernels.harness.inputs.strides import UNALIGNED
from torchstone.kernels.harness.reference.habits import steps_of
from torchstone.kernels.harness.reference.running import Values
from torchstone.kernels.messages.to_referee import Planned


def plan_larger(plan: Plan, level: int, long: int) -> Planned:
    """Every size beyond the problem's own, one after the other, and then all at once.

    Beyond `long`, too, unless it is 0, where the reference takes no more steps for it.
    """
    start = len(plan.cases)
    count = len(families.groups_of(plan.drawn[0]))
    for step in range(growing.STEPS):
        for number in range(count):
            if step == growing.STEPS - 1:
                _add_heavy(plan, number)
            _add_larger(plan, (step * count + number) % plan.seeds, number, step, level)
    for number in range(count):
        _add_held(plan, number, level)
    if len(plan.cases) > start and count > 1 and level >= len(SMALL):
        _add_all_larger(plan)
    _add_blocks(plan, level)
    for number in range(count if long and plan.reference.framework == "torch" else 0):
        _add_long(plan, number, long)
    if len(plan.cases) == start:
        plan.skipped[families.LARGER] = "the reference takes no larger size"
    return planned_since(plan, start)


def _add_larger(plan: Plan, seed: int, number: int, step: int, level: int) -> None:
    for given, group in _grow_by_steps(plan, seed, number, step, level):
        if _add_shaped(plan, seed, number, step, given, group):
            return


def _grow_by_steps(
    plan: Plan, seed: int, number: int, step: int, level: int
) -> Iterator[tuple[Values, families.Group]]:
    """The inputs with one size grown by a step, beside the largest other sizes first."""
    inputs = plan.drawn[seed]
    groups = families.groups_of(inputs)
    if number >= len(groups):
        return
    group = groups[number]
    sizes = growing.larger_sizes(group.size)
    if step >= len(sizes):
        return
    for attempt in dict.fromkeys((SMALLEST if level < len(SMALL) else level, level, 0)):
        base = cut_inputs(plan, inputs, attempt, group)
        if growing.elements_after(base, group, sizes[step]) > plan.most_elements:
            continue
        for given in grow_inputs(plan, base, group, sizes[step], seed):
            yield given, group


def _add_shaped(
    plan: Plan, seed: int, number: int, step: int, given: Values, group: families.Group
) -> bool:
    """Grown inputs with slow ramps on half of their lines, and as extreme as they can be."""
    if holds_whole_numbers(plan):
        for turn in range(whole.WAYS if step == growing.STEPS - 1 else 0):
            add_larger(plan, seed, whole.extreme(given, plan.ranges, turn), number, finite=False)
    versions = (growing.ramped(given, group, step), given)
    return any(add_larger(plan, seed, version, number) for version in versions)


def _add_heavy(plan: Plan, number: int) -> None:
    """Whole numbers, so many and so large that their sum has more bits than a float keeps."""
    group = families.groups_of(plan.drawn[0])[number]
    if not holds_whole_numbers(plan) or not _sums_along(plan, number, group):
        return
    for given in _grow_alone(plan, number, growing.prime_above(growing.HEAVY)):
        heavy = whole.heavy(given, plan.ranges, group.places)
        if add_larger(plan, 0, heavy, growing.APART, finite=False):
            return


def _sums_along(plan: Plan, number: int, group: families.Group) -> bool:
    """The side is gone from the outputs: what stood along it has met in them."""
    grown = _grow_alone(plan, number, group.size + 1)
    try:
        one, two = (
            [item.shape for item in plan.oracle.outputs(given, 0)]
            for given in (cut_inputs(plan, plan.drawn[0], SMALLEST, group), *grown[-1:])
        )
    except (ValueError, *REFUSED):
        return False
    return one == two


def _add_held(plan: Plan, number: int, level: int) -> None:
    """One array after the other holds its value along the grown side: nothing is forgotten."""
    step = len(growing.larger_sizes(families.groups_of(plan.drawn[0])[number].size)) - 1
    for given, group in _grow_by_steps(plan, 0, number, step, min(level, 0)):
        made = growing.held(given, group)[: 1 if level < len(SMALL) else None]
        added = [add_larger(plan, 0, item, number, calm=True) for item in made]
        if any(added):
            return


def _grow_alone(plan: Plan, number: int, size: int) -> list[Values]:
    """One size grown beside the smallest of all others; none where that is too much."""
    inputs = plan.drawn[0]
    groups = families.groups_of(inputs)
    if number >= len(groups):
        return []
    base = cut_inputs(plan, inputs, SMALLEST, groups[number])
    if growing.elements_after(base, groups[number], size) > growing.LONG_ELEMENTS:
        return []
    return grow_inputs(plan, base, groups[number], size, 0)


def _add_long(plan: Plan, number: int, long: int) -> None:
    """One size beyond a very long one, beside small ones."""
    group = families.groups_of(plan.drawn[0])[number]
    large = _grow_alone(plan, number, growing.prime_above(long))[-1:]
    if not large or _walks_along(plan, number):
        return
    if holds_whole_numbers(plan):
        large = [whole.heavy(large[0], plan.ranges, group.places)]
    add_larger(plan, 0, large[0], number)


def _walks_along(plan: Plan, number: int) -> bool:
    """The reference takes more steps where this size is larger, or does not take it."""
    inputs = plan.drawn[0]
    group = families.groups_of(inputs)[number]
    small = _grow_alone(plan, number, group.size + 1)[-1:]
    try:
        both = [steps_of(plan.reference, item) for item in
                (cut_inputs(plan, inputs, SMALLEST, group), *small)]  # fmt: skip
    except REFUSED:
        return True
    return len(both) == 1 or both[0] != both[1]


def _add_all_larger(plan: Plan) -> None:
    """All sizes grown at once: a grid with several programs along each of its sides."""
    given = inputs = plan.drawn[1]
    for group in families.groups_of(inputs):
        size = growing.larger_sizes(group.size)[1]
        if growing.elements_after(given, group, size) > plan.most_elements:
            continue
        given = _grow_where_taken(plan, given, group, size, 1)
    if given is not inputs:
        add_larger(plan, 1, given, -1)


def _add_blocks(plan: Plan, level: int) -> None:
    """All sizes whole blocks at once, with one corner far larger than the rest.

    What is written for even sides, or for sides that a vector or a tile divides, runs only
    where all of them are.
    """
    costly = level < len(SMALL)
    for turn in range(1 if costly else growing.BLOCK_TURNS):
        seed = turn % plan.seeds
        given = _grow_to_blocks(plan, seed, growing.BLOCK >> (costly or turn % 2))
        if given is None:
            return
        for version in (*scales.graded(given, turn), given):
            if add_larger(plan, seed, version, -1, calm=True):
                break


def _grow_to_blocks(plan: Plan, seed: int, block: int) -> Values | None:
    """The inputs with every size the next multiple of a block, as far as there is room."""
    given = inputs = plan.drawn[seed]
    # the last sizes first: where there is no room for more, a batch stays as small as it is
    for group in reversed(families.groups_of(inputs)):
        size = -(-group.size // block) * block
        if size == group.size:
            continue
        if growing.elements_after(given, group, size) > growing.BLOCK_ELEMENTS:
            continue
        given = _grow_where_taken(plan, given, group, size, seed)
    return None if given is inputs else given


def _grow_where_taken(
    plan: Plan, inputs: Values, group: families.Group, size: int, seed: int
) -> Values:
    """Larger inputs, or the same where the reference takes none."""
    versions = (accept_inputs(plan, item) for item in grow_inputs(plan, inputs, group, size, seed))
    return next((item for item in versions if item is not None), inputs)


def plan_lengths(plan: Plan, longest: int) -> Planned:
    """One size after the other at every length up to the longest; without one, at a few.

    A place that is computed through a rounded quotient, or a tail that one residue lacks, is
    wrong at lengths that nobody would think of.
    """
    start = len(plan.cases)
    count = len(families.groups_of(plan.drawn[0]))
    last = min(longest, growing.MOST_LENGTHS // max(count, 1))
    for number in range(count):
        # where the reference walks along a side, every length costs it as many steps
        apart = growing.WALKED_APART if last and _walks_along(plan, number) else 1
        sizes = range(2, last + 1, apart) if last else growing.FEW_LENGTHS
        short = [_shorten_others(plan, number, seed) for seed in range(plan.seeds)]
        for turn, size in enumerate(_in_turns(sizes)):
            _add_length(plan, number, size, turn, short[turn % plan.seeds])
    return planned_since(plan, start)


def _shorten_others(plan: Plan, number: int, seed: int) -> tuple[families.Group, Values] | None:
    """One of the sizes, and inputs in which all others are small."""
    inputs = plan.drawn[seed]
    groups = families.groups_of(inputs)
    if number >= len(groups):
        return None
    return groups[number], cut_inputs(plan, inputs, 0, groups[number])


def _add_length(
    plan: Plan, number: int, size: int, turn: int, beside: tuple[families.Group, Values] | None
) -> None:
    if beside is None or beside[0].size == size:
        return
    seed = turn % plan.seeds
    group, base = beside
    if size < group.size:
        made = [families.resized(base, group, size)]
    elif growing.elements_after(base, group, size) <= plan.most_elements:
        made = grow_inputs(plan, base, group, size, seed)
    else:
        return
    for given in made:
        shaped = growing.ramped(given, group, turn) if turn % 2 else given
        case = add_case(
            plan, families.LENGTHS, seed, shaped, finite=True, resized=True, group=number
        )
        if case is not None:
            if turn // 2 % 2:  # tails of every length, off a boundary of memory
                case.layout = UNALIGNED
            return


def grow_inputs(
    plan: Plan, inputs: Values, group: families.Group, size: int, seed: int
) -> list[Values]:
    """Larger inputs; none where torch cannot pick elements of their format."""
    try:
        return growing.grown(inputs, group, size, seed, plan.drawn[seed])
    except (RuntimeError, NotImplementedError):
        return []


def _in_turns(sizes: Sequence[int]) -> list[int]:
    """Short and long in turns, so that what is kept from a longer call meets a shorter one."""
    half = (len(sizes) + 1) // 2
    pairs = zip(sizes[:half], [*reversed(sizes[half:]), 0], strict=False)
    return [size for pair in pairs for size in pair if size]
