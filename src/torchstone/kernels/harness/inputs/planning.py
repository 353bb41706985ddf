"""The cases of a problem: its own inputs under every seed, and the families made from them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import torch

from torchstone.kernels.harness.inputs import lines, scales, whole
from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.cases import MOST_OWN_ERROR, Case
from torchstone.kernels.harness.inputs.structure import Structures, structures_of
from torchstone.kernels.harness.judging import judge
from torchstone.kernels.harness.reference.conventions import attends
from torchstone.kernels.harness.reference.double_precision import Oracle, reduced
from torchstone.kernels.harness.reference.habits import answers_with_inputs, written_inputs
from torchstone.kernels.harness.reference.running import (
    CHANCE,
    ProblemError,
    Reference,
    Values,
    as_tensor,
    leaves_of,
)
from torchstone.kernels.harness.reference.ties import ties_are_fixed
from torchstone.kernels.harness.values import raw_bytes
from torchstone.kernels.messages.facts import PlannedCase
from torchstone.kernels.messages.to_referee import Loaded, Planned
from torchstone.kernels.sessions.calls import LAID_OUT, POISONED

SMALL = ((5, 8), (11, 16))
"""Smaller sizes: for a size that is no power of two, and for one that is; two attempts."""
SMALLEST = -1
_SMALLEST = (4, 8)
"""Smaller still, and even: for what stands beside a size that grows."""
TINY = -2
_TINY = (2, 2)
"""For a kernel that is costly even where everything is small."""
MIDDLE = -3
_MIDDLE = (61, 64)
"""For the families of a problem whose own sizes are large."""
FULL = 2
"""Nothing is cut, unless it is too large for a whole family."""
WHOLE = 3
"""Nothing is cut at all."""
_MOST_IN_FAMILY = 1 << 18
"""Elements of inputs above which families get smaller ones: a hundred cases of them, each with its
answer in double precision, take half a gigabyte."""
_HUGE = 1 << 21
"""Elements of inputs above which everything is smaller: ten cases of them take 1.4 gigabytes."""
_STEP_SHARE = 4
"""A step on the way to an answer may have so many times as many elements as inputs may: most steps are gone when
the next one is made, but the answer is kept in two precisions, and what rounding does to it."""
_HEAVY_BYTES = 64 << 20
"""Weights above which one seed is alive at a time: five models, each in two precisions, take a gigabyte."""
_HEAVY_CASE_BYTES = 32 << 20
"""Weights above which every case is costly, however small its inputs are: it is judged by eight runs of the
reference, each of which reads all of them."""
_HEAVY_SEEDS = 2
"""As written, and with no two weights alike."""
_WITHOUT_STRUCTURE = (*POISONED, "expanded", "shared", "repeated", "extreme")
"""Families that no longer are what they are when a structure is put back."""
REFUSED = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError,
            AssertionError, ArithmeticError, KeyError, MemoryError)  # fmt: skip


_CHANGES = {
    "chance": "the reference draws its answer at random (dropout in training, rand_like): no candidate "
    "can be compared with it; make the random numbers in get_inputs",
    "state": "two calls of the model on the same inputs differ, because the first one changes its state: "
    "no candidate can be compared with it; call eval() in Model, or pass the state in get_inputs",
}
"""What the author of such a problem can do; where eval() alone ends it, nobody is asked."""


@dataclass(slots=True)
class Plan:
    """A problem, what was drawn for it, and the cases that were made so far."""

    reference: Reference
    oracle: Oracle
    seeds: int
    most_elements: int = _HUGE
    drawn: dict[int, Values] = field(default_factory=dict)
    """By seed: the problem's own inputs, or parts of them where they are too large."""
    cases: list[Case] = field(default_factory=list)
    choices: list[judge.Choice] = field(default_factory=list)
    ties_fixed: bool = False
    reduced_error: float = 0.0
    """What inputs of ten bits cost, in units of rounding."""
    small: bool = False
    """The inputs were cut."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Families that this problem cannot have, and why."""
    ranges: whole.Ranges = field(default_factory=dict)
    structures: Structures = field(default_factory=Structures)
    places: list[tuple[int, int]] = field(default_factory=list)
    """Of every size that may change: the first input and side that have it."""
    known: set[str] = field(default_factory=set)
    """Keys of inputs that are cases already."""
    steps: dict[str, int] = field(default_factory=dict)
    """By the shapes of inputs: elements of the largest step."""


def open_plan(source: str, framework: str, seeds: int) -> Plan:
    """A problem, with nothing drawn yet."""
    reference = Reference.load(source, framework)
    return Plan(reference, Oracle(reference), seeds)


def load_plan(plan: Plan, most_elements: int) -> Loaded:
    """The problem's own inputs under every seed, and what follows from them."""
    plan.most_elements = most_elements or _HUGE
    weights = sum(t.numel() * t.element_size() for t in plan.reference.state(0).values())
    if weights > _HEAVY_BYTES:
        plan.reference.is_heavy, plan.seeds = True, min(plan.seeds, _HEAVY_SEEDS)
    _draw_inputs(plan)
    first = [plan.drawn[seed] for seed in range(plan.seeds)]
    draft = _draft(plan, first)
    changes = _find_changes(plan, first[0], draft[0])
    if changes and plan.reference.evaluate():
        draft = _draft(plan, first)
        if _find_changes(plan, first[0], draft[0]):
            raise ProblemError(_CHANGES[changes])
    elif changes:
        raise ProblemError(_CHANGES[changes])
    plan.structures = structures_of(first)
    plan.oracle.attends = attends(plan.reference, first[0])
    plan.oracle.measure(draft)
    for seed, item in enumerate(first):
        add_case(plan, "own", seed, item)
    plan.choices = judge.find_choices(plan.cases[0], leaves_of(first[0]))
    plan.ties_fixed = bool(plan.choices) and ties_are_fixed(plan.reference, first[0])
    plan.reduced_error = _measure_reduced_error(plan)
    plan.ranges = whole.ranges_of(first)
    plan.places = [group.places[0] for group in families.groups_of(first[0])]
    writes = written_inputs(plan.reference, first[0])
    plan.reference.writes_inputs = any(writes)
    return Loaded(
        cases=list_cases(plan),
        small=plan.small,
        double=plan.oracle.double,
        seeds=plan.seeds,
        weights_bytes=weights,
        heavy=weights > _HEAVY_CASE_BYTES or not can_be_held(plan, first[0], plan.most_elements),
        writes_inputs=writes,
        constant=all(_is_constant(item.reference) for case in plan.cases for item in case.answers),
        aliases=answers_with_inputs(plan.reference, first[0]),
        evaluated=changes if plan.reference.evaluates else "",
    )


def _draft(plan: Plan, inputs: list[Values]) -> list[Case]:
    return [plan.oracle.case(i, "own", i, item, perturb=False) for i, item in enumerate(inputs)]


def _find_changes(plan: Plan, inputs: Values, case: Case) -> str:
    """Why the reference answers the same question differently: its state, or chance.

    A reference that does is no measure for a single answer.
    """
    runs = {
        "state": plan.reference.run(plan.reference.model(0), inputs),
        "chance": plan.reference.run(plan.reference.model(0), inputs, chance=CHANCE + 1),
    }
    for why, other in runs.items():
        for answer, leaf in zip(case.answers, leaves_of(other), strict=True):
            found = as_tensor(leaf)
            if found is not None and not torch.equal(
                answer.reference.nan_to_num(), found.nan_to_num()
            ):
                return why
    return ""


def _draw_inputs(plan: Plan) -> None:
    """Draw the inputs of every seed; of large ones a single draw is cut at several places."""
    inputs = plan.reference.inputs(0)
    if can_be_held(plan, inputs, plan.most_elements):
        later = {seed: plan.reference.inputs(seed) for seed in range(1, plan.seeds)}
        plan.drawn = {0: inputs, **later}
        return
    plan.small = True
    plan.drawn[0] = _cut_enough(plan, inputs)
    try:
        plan.oracle.outputs(plan.drawn[0], 0)
    except REFUSED:
        plan.reference.needs_numbers = True
        plan.drawn[0] = _cut_enough(plan, inputs)
    if not can_be_held(plan, plan.drawn[0], plan.most_elements):
        plan.seeds = min(plan.seeds, _HEAVY_SEEDS)
    for seed in range(1, plan.seeds):
        plan.drawn[seed] = _cut_alike(inputs, plan.drawn[0], seed)


def _cut_enough(plan: Plan, inputs: Values) -> Values:
    """The inputs cut as usual; further where the rest of them cannot be cut and is large."""
    for level in (1, SMALLEST, TINY):
        inputs = cut_inputs(plan, inputs, level)
        if can_be_held(plan, inputs, plan.most_elements):
            break
    return inputs


def can_be_held(plan: Plan, inputs: Values, most: int) -> bool:
    """The inputs, and every step on the way to their answer, are small enough to be held many times over.

    Where inputs are cut for an interpreter, the reference still has the room of any other.
    """
    room = most if most == _MOST_IN_FAMILY else max(most, _HUGE)
    return count_elements(inputs) <= most and _largest_step(plan, inputs) <= _STEP_SHARE * room


def _largest_step(plan: Plan, inputs: Values) -> int:
    shapes = _shapes(inputs)
    if shapes not in plan.steps:
        plan.steps[shapes] = plan.reference.largest_step(inputs)
    return plan.steps[shapes]


def count_elements(inputs: Values) -> int:
    """Of all arrays together."""
    tensors = [as_tensor(leaf) for leaf in leaves_of(inputs)]
    return sum(item.numel() for item in tensors if item is not None)


def cut_inputs(
    plan: Plan, inputs: Values, level: int = 1, kept: families.Group | None = None
) -> Values:
    """Every size that may change made small, where the reference takes it."""
    if level >= len(SMALL):
        return inputs
    is_huge = not can_be_held(plan, inputs, plan.most_elements)
    for group in _largest_first(inputs) if is_huge else families.groups_of(inputs):
        if group == kept:
            continue
        both = {SMALLEST: _SMALLEST, TINY: _TINY, MIDDLE: _MIDDLE}.get(level) or SMALL[level]
        size = both[group.size & (group.size - 1) == 0]
        if group.size <= size:
            continue
        made = accept_inputs(plan, families.resized(inputs, group, size))
        if made is None and is_huge:
            made = _cut_apart(plan, inputs, group, size)
        inputs = made or inputs
    return inputs


def _cut_apart(plan: Plan, inputs: Values, group: families.Group, size: int) -> Values:
    """Sizes that are equal by chance (a batch and a width of 32): one after the other, where they cannot all change."""
    for dim in sorted({dim for _, dim in group.places}):
        part = families.Group(group.size, tuple(at for at in group.places if at[1] == dim))
        inputs = accept_inputs(plan, families.resized(inputs, part, size)) or inputs
    return inputs


def affordable_level(plan: Plan, level: int) -> int:
    """The level of sizes at which a whole family can be held."""
    if level != FULL:
        return level
    inputs = plan.drawn[0]
    levels = (FULL, MIDDLE, 1, 0, TINY)
    held = (it for it in levels if can_be_held(plan, cut_inputs(plan, inputs, it), _MOST_IN_FAMILY))
    return next(held, TINY)


def accept_inputs(plan: Plan, inputs: Values) -> Values | None:
    """The inputs, or None where the reference refuses them."""
    if plan.reference.shapes_without_computing(inputs, 0) is not None:
        return inputs
    try:
        plan.oracle.outputs(inputs, 0)
    except REFUSED:
        return None
    return inputs


def _measure_reduced_error(plan: Plan) -> float:
    case = plan.cases[0]
    try:
        found = plan.oracle.outputs(reduced(case.inputs), case.seed)
    except REFUSED:
        return 0.0
    errors = [
        float(((new.double() - answer.exact).abs() / answer.unit).nan_to_num().max())
        for new, answer in zip(found, case.answers, strict=True)
        if answer.reference.dtype == torch.float32 and answer.reference.numel()
    ]
    return max(errors, default=0.0)


def plan_own_small(plan: Plan, level: int) -> Planned:
    """The problem's own inputs cut to a small size, from the second seed on."""
    start = len(plan.cases)
    for seed in range(1, plan.seeds):
        add_case(plan, "own", seed, cut_inputs(plan, plan.drawn[seed], level))
    return planned_since(plan, start)


def plan_values(
    plan: Plan, family: str, seed: int, inputs: Values, turn: int | None = None
) -> None:
    """One case of a family; the turn, as a rule the seed, says which."""
    turn = seed if turn is None else turn
    if plan.structures.kinds and family in _WITHOUT_STRUCTURE:
        names = ", ".join(plan.structures.names)
        plan.skipped.setdefault(family, f"the problem's inputs are {names}")
        return
    if family in POISONED:
        _plan_poison(plan, family, seed, inputs, turn)
        return
    for version in _list_versions(plan, family, turn, inputs):
        key = _make_key(plan, family, seed, version)
        if key in plan.known:  # zeros are the same under every seed
            return
        if add_case(plan, family, seed, version, finite=True, calm=family in families.CALM):
            plan.known.add(key)
            return
    if not any(case.family == family for case in plan.cases):
        plan.skipped.setdefault(family, "the reference gives no finite answer there")


def _list_versions(plan: Plan, family: str, turn: int, inputs: Values) -> list[Values]:
    """The inputs in a family of values, the likeliest to be taken first."""
    floats = any(families.is_float(leaf) for leaf in leaves_of(inputs))
    if family == "scalars":
        return families.other_numbers(inputs, turn)
    if family == "truths":
        return families.other_truths(inputs, turn)
    if family == "lines":
        return lines.lined(inputs, turn)
    if family == families.GRADED:
        return scales.graded(inputs, turn)
    if family == "ladder":
        return scales.ladder(inputs, turn)
    if family in families.OTHER_MEMORY:
        return families.remembered(inputs, family, turn)
    if family == "repeated":
        made = whole.repeated(inputs, plan.ranges, turn) if floats else None
        return [] if made is None else [made]
    if family == "extreme":
        return [] if floats else [whole.extreme(inputs, plan.ranges, turn)]
    if not floats:
        return whole.of_family(inputs, family, turn, plan.ranges)
    return families.valued(inputs, family, turn)


def _make_key(plan: Plan, family: str, seed: int, inputs: Values) -> str:
    """The same for the same inputs to the same weights."""
    parts = [as_tensor(leaf) for leaf in leaves_of(inputs)]
    data = b"".join(raw_bytes(item) for item in parts if item is not None)
    weights = seed if plan.reference.state(seed) or family in LAID_OUT else 0
    return f"{family} {weights} {hashlib.sha256(data).hexdigest()}"


def _plan_poison(plan: Plan, family: str, seed: int, inputs: Values, turn: int) -> None:
    if family == "masked":
        made = lines.masked(inputs, turn)
    else:
        made = families.poisoned(inputs, family, turn)
    if made is None:
        plan.skipped.setdefault(family, "no input holds floating-point numbers")
        return
    given, poison = made
    versions = [poison.put(inputs, poison.finite(turn)) for turn in range(3)]
    try:
        found = [
            plan.oracle.exact(item, seed, plan.oracle.outputs(item, seed)) for item in versions
        ]
    except REFUSED:
        return
    case = add_case(plan, family, seed, given)
    if case is None:
        return
    first = next(i for i, leaf in enumerate(leaves_of(inputs)) if families.is_float(leaf))
    case.lenient = poison.leaf != first
    case.poisoned = [
        (a != b) | (b != c) | (a != c) | _moved_place(answer.reference, a)
        for a, b, c, answer in zip(*found, case.answers, strict=True)
    ]


def add_case(
    plan: Plan, family: str, seed: int, inputs: Values, *, finite: bool = False,
    calm: bool = False, resized: bool = False, group: int = -1, size: int = 0,
) -> Case | None:  # fmt: skip
    """A new case; None where the reference refuses it.

    `finite`: nor where its answer is not finite; `calm`: nor where the reference itself is so
    far off, as by a square that overflows, that a kernel could be, too.
    """
    if resized and _largest_step(plan, inputs) > _STEP_SHARE * max(plan.most_elements, _HUGE):
        return None
    if plan.structures.kinds:
        inputs = plan.structures.restored(inputs)
    try:
        case = plan.oracle.case(len(plan.cases), family, seed, inputs)
    except REFUSED:
        if family == "own":
            raise
        return None
    if finite and not all(_finite(item.reference, item.exact) for item in case.answers):
        return None
    if family in LAID_OUT:
        case.layout = family
    case.resized, case.group, case.size = resized, group, size
    if calm and _reference_is_far_off(plan, case):
        return None
    plan.cases.append(case)
    return case


def add_larger(
    plan: Plan, seed: int, inputs: Values, group: int, *, finite: bool = True, calm: bool = False
) -> Case | None:
    """A new case of a size beyond the problem's own."""
    return add_case(
        plan, families.LARGER, seed, inputs, finite=finite, calm=calm, resized=True, group=group
    )


def _reference_is_far_off(plan: Plan, case: Case) -> bool:
    """So far that this alone would decide what is allowed."""
    if all(item.most_own_error < MOST_OWN_ERROR for item in case.answers):
        return False  # by the first bound, which costs nothing
    own, dtype = case.own_error, case.answers[0].reference.dtype
    usual = plan.oracle.allowed(0.0, plan.reduced_error, dtype)
    return own >= MOST_OWN_ERROR and 2 * own > usual


def own_error_of(plan: Plan, case: Case) -> float:
    """What the reference is off by itself, in units, in this case and others of its family."""
    if case.family in families.ALONE:
        return case.own_error  # of very different sizes, one must not excuse another
    # beside what is not finite stand the problem's own numbers
    alike = "own" if case.family in POISONED else case.family
    mine = (item for item in plan.cases if item.family == alike)
    return max((item.own_error for item in mine), default=case.own_error)


def length_of(plan: Plan, case: Case) -> int:
    """How many numbers meet in one output; 0: as many as for the problem's own inputs."""
    if case.family in families.LONGER and not case.length:
        case.length = plan.oracle.length_of(case.inputs, case.seed)
    return case.length


def holds_whole_numbers(plan: Plan) -> bool:
    """No input holds floating-point numbers."""
    return not any(families.is_float(leaf) for leaf in leaves_of(plan.cases[0].inputs))


def sizes_of(plan: Plan, inputs: Values) -> list[int]:
    """All sizes that may change, in the problem's own order."""
    leaves = leaves_of(inputs)
    return [families.tensor_of(leaves[leaf]).shape[dim] for leaf, dim in plan.places]


def list_cases(plan: Plan, start: int = 0) -> list[PlannedCase]:
    """The cases from a number on, without their inputs."""
    return [
        PlannedCase(
            case.number, case.family, case.seed, _shapes(case.inputs), case.resized,
            sizes_of(plan, case.inputs), case.group, case.size,
        )
        for case in plan.cases[start:]
    ]  # fmt: skip


def planned_since(plan: Plan, start: int, cut: bool = False) -> Planned:
    """The cases from a number on, as the answer to who asked for them."""
    return Planned(list_cases(plan, start), plan.skipped, cut)


def _largest_first(inputs: Values) -> list[families.Group]:
    """Sizes in an order in which little is copied on the way to smaller ones."""
    return sorted(families.groups_of(inputs), key=lambda group: -group.size * len(group.places))


def _cut_alike(inputs: Values, pattern: Values, seed: int) -> Values:
    """Another part of the inputs, as large as the part that was cut first."""
    cut = leaves_of(pattern)
    for group in _largest_first(inputs):
        parts: dict[int, list[tuple[int, int]]] = {}
        for leaf, dim in group.places:
            parts.setdefault(families.tensor_of(cut[leaf]).shape[dim], []).append((leaf, dim))
        for size, places in parts.items():
            if size < group.size:
                part = families.Group(group.size, tuple(places))
                start = seed * size % (group.size - size + 1)
                inputs = families.resized(inputs, part, size, start)
    return inputs


def _is_constant(output: torch.Tensor) -> bool:
    """One value everywhere, or nothing at all: then a comparison says little."""
    flat = output.reshape(-1)
    return output.dim() > 0 and bool((flat == flat[:1]).all())


def _moved_place(poisoned: torch.Tensor, finite: torch.Tensor) -> torch.Tensor:
    """Whole numbers that are other ones since the poison: they depend on it."""
    if poisoned.is_floating_point():
        return torch.zeros(poisoned.shape, dtype=torch.bool)
    return poisoned != finite


def _finite(*tensors: torch.Tensor) -> bool:
    return all(bool(torch.isfinite(item).all()) for item in tensors if item.is_floating_point())


def _shapes(inputs: Values) -> str:
    tensors = [as_tensor(leaf) for leaf in leaves_of(inputs)]
    return " ".join("×".join(map(str, item.shape)) or "1" for item in tensors if item is not None)
