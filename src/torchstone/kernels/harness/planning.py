"""The cases of a problem: its own inputs under every seed, and the families made from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness import families, judge
from torchstone.kernels.harness.oracle import Case, Oracle, reduced
from torchstone.kernels.harness.reference import (
    ProblemError,
    Reference,
    as_tensor,
    leaves_of,
    rebuilt,
)
from torchstone.kernels.harness.values import name_of

_SMALL = ((5, 8), (11, 16))
"""Smaller sizes: for a size that is no power of two, and for one that is; two attempts."""
_HUGE = 1 << 22
_REFUSED = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError,
            AssertionError, ArithmeticError, KeyError)  # fmt: skip


class Planner:
    """One problem and its cases."""

    def __init__(self, source: str, framework: str, seeds: int) -> None:
        self.reference = Reference.load(source, framework)
        self.oracle = Oracle(self.reference)
        self.seeds = seeds
        self.cases: list[Case] = []
        self.choices: list[judge.Choice] = []
        self.own_errors: dict[str, float] = {}
        self.reduced_error = 0.0
        self.small = False
        self.most_elements = _HUGE
        self.skipped: dict[str, str] = {}

    def load(self, most_elements: int) -> dict[str, Any]:
        """The problem's own inputs under every seed, and what follows from them."""
        self.most_elements = most_elements or _HUGE
        first = [self._own_inputs(seed) for seed in range(self.seeds)]
        draft = [self.oracle.case(i, "own", i, item, perturb=False) for i, item in enumerate(first)]
        again = self.oracle.outputs(first[0], 0)
        for one, two in zip(draft[0].answers, again, strict=True):
            if not torch.equal(one.reference.nan_to_num(), two.nan_to_num()):
                raise ProblemError("two calls of the model on the same inputs differ")
        self.oracle.measure(draft)
        for seed, item in enumerate(first):
            self._add("own", seed, item)
        self.choices = judge.find_choices(self.cases[0], leaves_of(first[0]))
        self.reduced_error = self._reduced_error()
        return {
            "cases": self._list(), "small": self.small, "double": self.oracle.double,
            "elements": self._elements(first[0]), "length": self.oracle.length,
            "writes_inputs": self._writes(first[0]), "dtypes": self._dtypes(),
            "aliases": self._shares(first[0]),
        }  # fmt: skip

    def _own_inputs(self, seed: int) -> list[Any]:
        inputs = self.reference.inputs(seed)
        if self._elements(inputs) > self.most_elements:
            self.small = True
        return self._cut(inputs) if self.small else inputs

    def _elements(self, inputs: list[Any]) -> int:
        tensors = [as_tensor(leaf) for leaf in leaves_of(inputs)]
        return sum(item.numel() for item in tensors if item is not None)

    def _cut(self, inputs: list[Any], level: int = 1) -> list[Any]:
        """Every size that may change made small, where the reference takes it."""
        if level >= len(_SMALL):
            return inputs
        for group in families.groups_of(inputs):
            size = _SMALL[level][group.size & (group.size - 1) == 0]
            if group.size > size:
                inputs = self._accepted(families.resized(inputs, group, size)) or inputs
        return inputs

    def _accepted(self, inputs: list[Any]) -> list[Any] | None:
        try:
            self.oracle.outputs(inputs, 0)
        except _REFUSED:
            return None
        return inputs

    def _reduced_error(self) -> float:
        case = self.cases[0]
        try:
            found = self.oracle.outputs(reduced(case.inputs), case.seed)
        except _REFUSED:
            return 0.0
        errors = [
            float(((new.double() - answer.exact).abs() / answer.unit).nan_to_num().max())
            for new, answer in zip(found, case.answers, strict=True)
            if answer.reference.dtype == torch.float32 and answer.reference.numel()
        ]
        return max(errors, default=0.0)

    def _writes(self, inputs: list[Any]) -> list[bool]:
        """Which inputs the reference itself changes."""
        leaves = leaves_of(inputs)
        given = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        model = self.reference.model(0)
        with torch.no_grad():
            (model if callable(model) else model.forward)(*rebuilt(inputs, given))
        return [
            isinstance(a, torch.Tensor) and not torch.equal(a.nan_to_num(), b.nan_to_num())
            for a, b in zip(given, leaves, strict=True)
        ]

    def _shares(self, inputs: list[Any]) -> bool:
        """Does the reference itself answer with memory of its inputs?"""
        given = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf
                 for leaf in leaves_of(inputs)]  # fmt: skip
        model = self.reference.model(0)
        with torch.no_grad():
            found = (model if callable(model) else model.forward)(*rebuilt(inputs, given))
        mine = {_address(leaf) for leaf in given} - {0}
        return bool(mine & {_address(leaf) for leaf in leaves_of(found)})

    def _dtypes(self) -> list[str]:
        case = self.cases[0]
        tensors = [as_tensor(leaf) for leaf in leaves_of(case.inputs)]
        names = [name_of(item.dtype) for item in tensors if item is not None]
        return sorted({*names, *(name_of(answer.reference.dtype) for answer in case.answers)})

    def own_small(self, level: int) -> dict[str, Any]:
        """The problem's own inputs cut to a small size, from the second seed on."""
        start = len(self.cases)
        for seed in range(1, self.seeds):
            self._add("own", seed, self._cut(self.reference.inputs(seed), level))
        return {"cases": self._list(start)}

    def plan(self, level: int, size_level: int) -> dict[str, Any]:
        """All families under every seed; levels beyond the last leave the sizes alone."""
        start = len(self.cases)
        for seed in range(self.seeds):
            base = self._own_inputs(seed)
            for family in families.VALUES:
                self._plan_values(family, seed, self._cut(base, level))
        for family in families.SIZES:
            self._plan_sizes(family, size_level)
        return {"cases": self._list(start), "skipped": self.skipped}

    def _plan_values(self, family: str, seed: int, inputs: list[Any]) -> None:
        if family in ("nan", "inf"):
            self._plan_poison(family, seed, inputs)
            return
        for version in families.valued(inputs, family, seed):
            if self._add(family, seed, version, finite=True):
                return
        self.skipped.setdefault(family, "the reference gives no finite answer there")

    def _plan_poison(self, family: str, seed: int, inputs: list[Any]) -> None:
        made = families.poisoned(inputs, family, seed)
        if made is None:
            self.skipped.setdefault(family, "no input holds floating-point numbers")
            return
        given, poison = made
        versions = [families.with_value(inputs, poison, value) for value in (0.5, 9.0, -9.0)]
        try:
            found = [
                self.oracle.exact(item, seed, self.oracle.outputs(item, seed)) for item in versions
            ]
        except _REFUSED:
            return
        if not self._add(family, seed, given):
            return
        if family == "nan" and any(
            not item.reference.is_floating_point() for item in self.cases[-1].answers
        ):
            self.cases.pop()  # where a NaN stands in an order is nobody's promise
            self.skipped.setdefault(family, "an output of places has no promise about NaN")
            return
        first = next(i for i, leaf in enumerate(leaves_of(inputs)) if families.is_float(leaf))
        self.cases[-1].lenient = poison.leaf != first
        self.cases[-1].poisoned = [
            (a != b) | (b != c) | (a != c) for a, b, c in zip(*found, strict=True)
        ]

    def _plan_sizes(self, family: str, level: int) -> None:
        made = 0
        count = len(families.groups_of(self._cut(self._own_inputs(0), level)))
        for turn in range(max(self.seeds, count)):
            seed = turn % self.seeds
            inputs = self._cut(self._own_inputs(seed), level)
            chosen = families.groups_of(inputs)
            if not chosen:
                break
            group = chosen[turn % len(chosen)]
            made += self._add_sized(family, seed, inputs, group)
        if not made:
            self.skipped[family] = "the reference takes no other size"

    def _add_sized(self, family: str, seed: int, inputs: list[Any], group: families.Group) -> int:
        if family == "prime":
            size = families.prime_below(group.size)
        else:
            size = 1 if family == "one" else 0
        given = families.resized(inputs, group, size)
        if family == "prime" and seed % 2 == 1:
            for other in families.groups_of(given):
                smaller = families.resized(given, other, families.prime_below(other.size))
                given = self._accepted(smaller) or given
        if size == 0 and not self._sound(inputs, group, given):
            return 0
        if not self._add(family, seed, given, finite=True):
            return 0
        self.cases[-1].resized = True
        return 1

    def _sound(self, inputs: list[Any], group: families.Group, empty: list[Any]) -> bool:
        """Is nothing at all a case of this problem, and not an accident of the framework?

        Places cannot point into nothing, and sizes of outputs must follow the size as they do
        between the whole and one.
        """
        for leaf in leaves_of(empty):
            tensor = as_tensor(leaf)
            if tensor is None or tensor.is_floating_point() or not tensor.numel():
                continue
            if (
                tensor.dtype != torch.bool
                and 0 <= int(tensor.min()) <= int(tensor.max()) < group.size
            ):
                return False
        try:
            whole, one, none = (
                [tuple(item.shape) for item in self.oracle.outputs(given, 0)]
                for given in (inputs, families.resized(inputs, group, 1), empty)
            )
        except _REFUSED:
            return False
        steps = group.size - 1
        return all(
            len(a) == len(b) == len(c)
            and all((x - y) % steps == 0 and z == y - (x - y) // steps
                    for x, y, z in zip(a, b, c, strict=True))
            for a, b, c in zip(whole, one, none, strict=True)
        )  # fmt: skip

    def _add(self, family: str, seed: int, inputs: list[Any], finite: bool = False) -> bool:
        try:
            case = self.oracle.case(len(self.cases), family, seed, inputs)
        except _REFUSED:
            if family == "own":
                raise
            return False
        if finite and not all(_finite(item.reference, item.exact) for item in case.answers):
            return False
        if family == "strided":
            case.layout = "strided"
        own = max((item.own_error for item in case.answers), default=0.0)
        if family not in ("nan", "inf"):
            self.own_errors[family] = max(own, self.own_errors.get(family, 0.0))
        self.cases.append(case)
        return True

    def _list(self, start: int = 0) -> list[dict[str, Any]]:
        return [
            {"number": case.number, "family": case.family, "seed": case.seed,
             "resized": case.resized, "shapes": _shapes(case.inputs)}
            for case in self.cases[start:]
        ]  # fmt: skip


def _address(leaf: Any) -> int:
    if isinstance(leaf, np.ndarray):
        return int(leaf.__array_interface__["data"][0]) if leaf.size else 0
    return leaf.untyped_storage().data_ptr() if isinstance(leaf, torch.Tensor) else 0


def _finite(*tensors: torch.Tensor) -> bool:
    return all(bool(torch.isfinite(item).all()) for item in tensors if item.is_floating_point())


def _shapes(inputs: list[Any]) -> str:
    tensors = [as_tensor(leaf) for leaf in leaves_of(inputs)]
    return " ".join("×".join(map(str, item.shape)) or "1" for item in tensors if item is not None)
