"""Cases of other sizes than the problem's own: smaller ones, equal ones, one and none."""

from __future__ import annotations

import itertools

import torch

from torchstone.kernels.harness.inputs import lines
from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.planning import (
    REFUSED,
    Plan,
    accept_inputs,
    add_case,
    affordable_level,
    cut_inputs,
    plan_values,
    planned_since,
)
from torchstone.kernels.harness.reference.running import Values, as_tensor, leaves_of
from torchstone.kernels.messages.to_referee import Planned

_MOST_SIDES = 12
_MOST_EQUAL = 8
_PAIR = 2


def plan_families(plan: Plan, level: int, size_level: int, most: int) -> Planned:
    """All families; levels beyond the last leave the sizes alone.

    For a costly kernel `most` is how many cases of a family are enough; 0 for all others.
    """
    start = len(plan.cases)
    wanted, level = level, affordable_level(plan, level)
    size_level = affordable_level(plan, size_level)
    for seed in range(plan.seeds):
        base = cut_inputs(plan, plan.drawn[seed], level)
        for family in families.VALUES:
            if seed < _enough(plan, family, most):
                plan_values(plan, family, seed, base)
    if not most:  # cheap enough for every side of every array
        _plan_other_sides(plan, level)
    for family in families.SMALLER:
        _plan_sizes(plan, family, size_level, most)
    return planned_since(plan, start, cut=level != wanted)


def _enough(plan: Plan, family: str, most: int) -> int:
    return families.FEWEST.get(family, most) if most else plan.seeds


def _plan_other_sides(plan: Plan, level: int) -> None:
    """Lines along sides that the seeds did not reach."""
    count = len(lines.sides(cut_inputs(plan, plan.drawn[0], level)))
    for turn in range(plan.seeds, min(count, _MOST_SIDES)):
        base = cut_inputs(plan, plan.drawn[turn % plan.seeds], level)
        for family in ("lines", "masked"):
            plan_values(plan, family, turn % plan.seeds, base, turn)


def _plan_sizes(plan: Plan, family: str, level: int, most: int) -> None:
    made = 0
    enough = min(_enough(plan, family, most), plan.seeds)
    if family == "equal":
        count = len(families.groups_of(plan.drawn[0]))
        count = min(count * (count - 1) // 2 + (count > _PAIR), _MOST_EQUAL)
        wanted = range(min(count, enough) if most else count)
    else:
        count = len(families.groups_of(cut_inputs(plan, plan.drawn[0], level)))
        wanted = range(enough if most else max(enough, count))
    for turn in wanted:
        seed = turn % plan.seeds
        if family == "equal":
            made += _add_equal(plan, seed, turn, level)
            continue
        inputs = cut_inputs(plan, plan.drawn[seed], level)
        chosen = families.groups_of(inputs)
        if not chosen:
            break
        made += _add_sized(plan, family, seed, inputs, chosen[turn % len(chosen)], turn)
    if not made:
        plan.skipped[family] = "the reference takes no other size"


def _add_sized(
    plan: Plan, family: str, seed: int, inputs: Values, group: families.Group, turn: int
) -> int:
    if family == "prime":
        size = families.prime_below(group.size)
    elif family == "power":
        power = families.power_below(group.size)
        size = (power, min(power + 1, group.size - 1), power - 1)[turn // 2 % 3]
    else:
        size = 1 if family == "one" else 0
    given = families.resized(inputs, group, size)
    if family == "prime" and seed % 2 == 1:
        for other in families.groups_of(given):
            smaller = families.resized(given, other, families.prime_below(other.size))
            given = accept_inputs(plan, smaller) or given
    if size == 0 and not _is_sound(plan, inputs, group, given):
        return 0
    if size == 1 and accept_inputs(plan, families.resized(inputs, group, _PAIR)) is None:
        return 0  # one fits beside any size by broadcasting; the reference has no say in it
    return add_resized(plan, family, seed, given)


def _add_equal(plan: Plan, seed: int, turn: int, level: int) -> int:
    """Sizes that differ in the problem made equal: all of them first, then two and two.

    A kernel that tells sides apart by their lengths is right until two of them agree.
    """
    inputs = plan.drawn[seed]
    groups = families.groups_of(inputs)
    together = list(itertools.combinations(groups, _PAIR))
    alike = [*([groups] if len(groups) > _PAIR else []), *together][turn]
    size = min(group.size for group in alike)
    for group in alike:
        if group.size > size:
            inputs = families.resized(inputs, group, size)
    return add_resized(plan, "equal", seed, cut_inputs(plan, inputs, level))


def add_resized(plan: Plan, family: str, seed: int, given: Values) -> bool:
    """A new case of another size; whether there is one."""
    return add_case(plan, family, seed, given, finite=True, resized=True) is not None


def _is_sound(plan: Plan, inputs: Values, group: families.Group, empty: Values) -> bool:
    """Is nothing at all a case of this problem, and not an accident of the framework?

    Places cannot point into nothing, and sizes of outputs must follow the size as they do
    between the whole and one.
    """
    for leaf in leaves_of(empty):
        tensor = as_tensor(leaf)
        if tensor is None or tensor.is_floating_point() or not tensor.numel():
            continue
        if tensor.dtype != torch.bool and 0 <= int(tensor.min()) <= int(tensor.max()) < group.size:
            return False
    try:
        whole, one, none = (
            [tuple(item.shape) for item in plan.oracle.outputs(given, 0)]
            for given in (inputs, families.resized(inputs, group, 1), empty)
        )
    except REFUSED:
        return False
    steps = group.size - 1
    return all(
        len(a) == len(b) == len(c)
        and all((x - y) % steps == 0 and z == y - (x - y) // steps
                for x, y, z in zip(a, b, c, strict=True))
        for a, b, c in zip(whole, one, none, strict=True)
    )  # fmt: skip
