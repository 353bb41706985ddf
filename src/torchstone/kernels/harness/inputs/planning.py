"""The cases of a problem: its own inputs under every seed, and the families made from them."""

from __future__ import annotations

import hashlib
from typing import Any

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
    as_tensor,
    leaves_of,
    rebuilt,
)
from torchstone.kernels.harness.reference.ties import ties_are_fixed
from torchstone.kernels.harness.values import name_of, raw_bytes
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
_HEAVY_BYTES = 64 << 20
"""Weights above which one seed is alive at a time: five models, each in two precisions, take a gigabyte."""
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


class Planner:
    """One problem and its cases."""

    def __init__(self, source: str, framework: str, seeds: int) -> None:
        self.reference = Reference.load(source, framework)
        self.oracle = Oracle(self.reference)
        self.seeds = seeds
        self.cases: list[Case] = []
        self.choices: list[judge.Choice] = []
        self.ties_fixed = False
        self.reduced_error = 0.0
        self.small = False
        self.most_elements = _HUGE
        self.skipped: dict[str, str] = {}
        self.ranges: whole.Ranges = {}
        self.structures = Structures()
        self.places: list[tuple[int, int]] = []
        self._known: set[str] = set()
        self._drawn: dict[int, list[Any]] = {}

    def load(self, most_elements: int) -> dict[str, Any]:
        """The problem's own inputs under every seed, and what follows from them."""
        self.most_elements = most_elements or _HUGE
        weights = sum(t.numel() * t.element_size() for t in self.reference.state(0).values())
        if weights > _HEAVY_BYTES:
            self.reference.is_heavy, self.seeds = True, min(self.seeds, _HEAVY_SEEDS)
        self._draw()
        first = [self._own_inputs(seed) for seed in range(self.seeds)]
        draft = self._draft(first)
        changes = self._changes(first[0], draft[0])
        if changes and self.reference.evaluate():
            draft = self._draft(first)
            if self._changes(first[0], draft[0]):
                raise ProblemError(_CHANGES[changes])
        elif changes:
            raise ProblemError(_CHANGES[changes])
        self.structures = structures_of(first)
        self.oracle.attends = attends(self.reference, first[0])
        self.oracle.measure(draft)
        for seed, item in enumerate(first):
            self._add("own", seed, item)
        self.choices = judge.find_choices(self.cases[0], leaves_of(first[0]))
        self.ties_fixed = bool(self.choices) and ties_are_fixed(self.reference, first[0])
        self.reduced_error = self._reduced_error()
        self.ranges = whole.ranges_of(first)
        self.places = [group.places[0] for group in families.groups_of(first[0])]
        writes = written_inputs(self.reference, first[0])
        self.reference.writes_inputs = any(writes)
        return {
            "cases": self._list(), "small": self.small, "double": self.oracle.double,
            "elements": self.elements(first[0]), "length": self.oracle.length,
            "writes_inputs": writes, "dtypes": self._dtypes(),
            "seeds": self.seeds, "weights_bytes": weights,
            "constant": all(_is_constant(item.reference) for case in self.cases for item in case.answers),
            "aliases": answers_with_inputs(self.reference, first[0]),
            "structures": self.structures.names,
            "evaluated": changes if self.reference.evaluates else "",
        }  # fmt: skip

    def _draft(self, inputs: list[list[Any]]) -> list[Case]:
        return [self.oracle.case(i, "own", i, item, perturb=False) for i, item in enumerate(inputs)]

    def _changes(self, inputs: list[Any], case: Case) -> str:
        """Why the reference answers the same question differently: its state, or chance.

        A reference that does is no measure for a single answer.
        """
        runs = {
            "state": self.reference.run(self.reference.model(0), inputs),
            "chance": self.reference.run(self.reference.model(0), inputs, chance=CHANCE + 1),
        }
        for why, other in runs.items():
            for answer, leaf in zip(case.answers, leaves_of(other), strict=True):
                found = as_tensor(leaf)
                if found is not None and not torch.equal(
                    answer.reference.nan_to_num(), found.nan_to_num()
                ):
                    return why
        return ""

    def _own_inputs(self, seed: int) -> list[Any]:
        """The problem's own inputs under a seed, or parts of them where they are too large."""
        return self._drawn[seed]

    def _draw(self) -> None:
        """Draw the inputs of every seed; of large ones a single draw is cut at several places."""
        inputs = self.reference.inputs(0)
        if self.elements(inputs) <= self.most_elements:
            later = {seed: self.reference.inputs(seed) for seed in range(1, self.seeds)}
            self._drawn = {0: inputs, **later}
            return
        self.small = True
        self._drawn[0] = self._cut(inputs)
        for seed in range(1, self.seeds):
            self._drawn[seed] = _cut_alike(inputs, self._drawn[0], seed)

    def elements(self, inputs: list[Any]) -> int:
        tensors = [as_tensor(leaf) for leaf in leaves_of(inputs)]
        return sum(item.numel() for item in tensors if item is not None)

    def _cut(
        self, inputs: list[Any], level: int = 1, kept: families.Group | None = None
    ) -> list[Any]:
        """Every size that may change made small, where the reference takes it."""
        if level >= len(SMALL):
            return inputs
        for group in families.groups_of(inputs):
            if group == kept:
                continue
            both = {SMALLEST: _SMALLEST, TINY: _TINY, MIDDLE: _MIDDLE}.get(level) or SMALL[level]
            size = both[group.size & (group.size - 1) == 0]
            if group.size > size:
                inputs = self._accepted(families.resized(inputs, group, size)) or inputs
        return inputs

    def _affordable(self, level: int) -> int:
        """The level of sizes at which a whole family can be held."""
        inputs = self._own_inputs(0)
        for tried in (level, MIDDLE, 1) if level == FULL else ():
            if self.elements(self._cut(inputs, tried)) <= _MOST_IN_FAMILY:
                return tried
        return 0 if level == FULL else level

    def _accepted(self, inputs: list[Any]) -> list[Any] | None:
        try:
            self.oracle.outputs(inputs, 0)
        except REFUSED:
            return None
        return inputs

    def _reduced_error(self) -> float:
        case = self.cases[0]
        try:
            found = self.oracle.outputs(reduced(case.inputs), case.seed)
        except REFUSED:
            return 0.0
        errors = [
            float(((new.double() - answer.exact).abs() / answer.unit).nan_to_num().max())
            for new, answer in zip(found, case.answers, strict=True)
            if answer.reference.dtype == torch.float32 and answer.reference.numel()
        ]
        return max(errors, default=0.0)

    def _dtypes(self) -> list[str]:
        case = self.cases[0]
        tensors = [as_tensor(leaf) for leaf in leaves_of(case.inputs)]
        names = [name_of(item.dtype) for item in tensors if item is not None]
        return sorted({*names, *(name_of(answer.reference.dtype) for answer in case.answers)})

    def own_small(self, level: int) -> dict[str, Any]:
        """The problem's own inputs cut to a small size, from the second seed on."""
        start = len(self.cases)
        for seed in range(1, self.seeds):
            self._add("own", seed, self._cut(self._own_inputs(seed), level))
        return {"cases": self._list(start)}

    def _plan_values(
        self, family: str, seed: int, inputs: list[Any], turn: int | None = None
    ) -> None:
        """One case of a family; the turn, as a rule the seed, says which."""
        turn = seed if turn is None else turn
        if self.structures.kinds and family in _WITHOUT_STRUCTURE:
            names = ", ".join(self.structures.names)
            self.skipped.setdefault(family, f"the problem's inputs are {names}")
            return
        if family in POISONED:
            self._plan_poison(family, seed, inputs, turn)
            return
        for version in self._versions(family, turn, inputs):
            key = self._key(family, seed, version)
            if key in self._known:  # zeros are the same under every seed
                return
            if self._add(family, seed, version, finite=True, calm=family in families.CALM):
                self._known.add(key)
                return
        if not any(case.family == family for case in self.cases):
            self.skipped.setdefault(family, "the reference gives no finite answer there")

    def _versions(self, family: str, turn: int, inputs: list[Any]) -> list[list[Any]]:
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
            made = whole.repeated(inputs, self.ranges, turn) if floats else None
            return [] if made is None else [made]
        if family == "extreme":
            return [] if floats else [whole.extreme(inputs, self.ranges, turn)]
        if not floats:
            return whole.of_family(inputs, family, turn, self.ranges)
        return families.valued(inputs, family, turn)

    def _key(self, family: str, seed: int, inputs: list[Any]) -> str:
        """The same for the same inputs to the same weights."""
        parts = [as_tensor(leaf) for leaf in leaves_of(inputs)]
        data = b"".join(raw_bytes(item) for item in parts if item is not None)
        weights = seed if self.reference.state(seed) or family in LAID_OUT else 0
        return f"{family} {weights} {hashlib.sha256(data).hexdigest()}"

    def _plan_poison(self, family: str, seed: int, inputs: list[Any], turn: int) -> None:
        if family == "masked":
            made = lines.masked(inputs, turn)
        else:
            made = families.poisoned(inputs, family, turn)
        if made is None:
            self.skipped.setdefault(family, "no input holds floating-point numbers")
            return
        given, poison = made
        versions = [poison.put(inputs, poison.finite(turn)) for turn in range(3)]
        try:
            found = [
                self.oracle.exact(item, seed, self.oracle.outputs(item, seed)) for item in versions
            ]
        except REFUSED:
            return
        if not self._add(family, seed, given):
            return
        first = next(i for i, leaf in enumerate(leaves_of(inputs)) if families.is_float(leaf))
        self.cases[-1].lenient = poison.leaf != first
        self.cases[-1].poisoned = [
            (a != b) | (b != c) | (a != c) | _moved_place(answer.reference, a)
            for a, b, c, answer in zip(*found, self.cases[-1].answers, strict=True)
        ]

    def _add(
        self, family: str, seed: int, inputs: list[Any], finite: bool = False, calm: bool = False
    ) -> bool:
        """A new case, unless the reference refuses it.

        `finite`: nor where its answer is not finite; `calm`: nor where the reference itself is so
        far off, as by a square that overflows, that a kernel could be, too.
        """
        if self.structures.kinds:
            inputs = self.structures.restored(inputs)
        try:
            case = self.oracle.case(len(self.cases), family, seed, inputs)
        except REFUSED:
            if family == "own":
                raise
            return False
        if finite and not all(_finite(item.reference, item.exact) for item in case.answers):
            return False
        if family in LAID_OUT:
            case.layout = family
        if calm and self._reference_is_far_off(case):
            return False
        self.cases.append(case)
        return True

    def _reference_is_far_off(self, case: Case) -> bool:
        """So far that this alone would decide what is allowed."""
        if all(item.most_own_error < MOST_OWN_ERROR for item in case.answers):
            return False  # by the first bound, which costs nothing
        own, dtype = case.own_error, case.answers[0].reference.dtype
        usual = self.oracle.allowed(0.0, self.reduced_error, dtype)
        return own >= MOST_OWN_ERROR and 2 * own > usual

    def own_error(self, case: Case) -> float:
        """What the reference is off by itself, in units, in this case and others of its family."""
        if case.family in families.ALONE:
            return case.own_error  # of very different sizes, one must not excuse another
        # beside what is not finite stand the problem's own numbers
        alike = "own" if case.family in POISONED else case.family
        mine = (item for item in self.cases if item.family == alike)
        return max((item.own_error for item in mine), default=case.own_error)

    def length(self, case: Case) -> int:
        """How many numbers meet in one output; 0: as many as for the problem's own inputs."""
        if case.family in families.LONGER and not case.length:
            case.length = self.oracle.length_of(case.inputs, case.seed)
        return case.length

    @property
    def all_whole(self) -> bool:
        """No input holds floating-point numbers."""
        return not any(families.is_float(leaf) for leaf in leaves_of(self.cases[0].inputs))

    def sizes(self, inputs: list[Any]) -> list[int]:
        """All sizes that may change, in the problem's own order."""
        leaves = leaves_of(inputs)
        return [families.tensor_of(leaves[leaf]).shape[dim] for leaf, dim in self.places]

    def _list(self, start: int = 0) -> list[dict[str, Any]]:
        return [
            {"number": case.number, "family": case.family, "seed": case.seed,
             "resized": case.resized, "shapes": _shapes(case.inputs),
             "sizes": self.sizes(case.inputs),
             "group": case.group, "size": case.size}
            for case in self.cases[start:]
        ]  # fmt: skip


def _cut_alike(inputs: list[Any], pattern: list[Any], seed: int) -> list[Any]:
    """Another part of the inputs, as large as the part that was cut first."""
    leaves, cut = leaves_of(inputs), leaves_of(pattern)
    for group in families.groups_of(inputs):
        leaf, dim = group.places[0]
        size = families.tensor_of(cut[leaf]).shape[dim]
        if size < group.size:
            start = seed * size % (group.size - size + 1)
            leaves = leaves_of(families.resized(list(rebuilt(inputs, leaves)), group, size, start))
    return list(rebuilt(inputs, leaves))


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


def _shapes(inputs: list[Any]) -> str:
    tensors = [as_tensor(leaf) for leaf in leaves_of(inputs)]
    return " ".join("×".join(map(str, item.shape)) or "1" for item in tensors if item is not None)
