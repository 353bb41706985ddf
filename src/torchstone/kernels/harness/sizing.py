"""Cases of other sizes than the problem's own: smaller ones, one, none, and larger ones."""

from __future__ import annotations

from typing import Any

import torch

from torchstone.kernels.harness import families, growing
from torchstone.kernels.harness.planning import REFUSED, SMALL, Planner
from torchstone.kernels.harness.reference import as_tensor, leaves_of


class SizePlanner(Planner):
    """A planner that changes sizes, too."""

    def plan(self, level: int, size_level: int) -> dict[str, Any]:
        """All families under every seed; levels beyond the last leave the sizes alone."""
        start = len(self.cases)
        for seed in range(self.seeds):
            base = self._own_inputs(seed)
            for family in families.VALUES:
                self._plan_values(family, seed, self._cut(base, level))
        for family in families.SMALLER:
            self._plan_sizes(family, size_level)
        return {"cases": self._list(start), "skipped": self.skipped}

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
        self.cases[-1].resized, self.cases[-1].size = True, size
        return 1

    def larger(self, level: int) -> dict[str, Any]:
        """Every size beyond the problem's own, one after the other, and then all at once."""
        start = len(self.cases)
        count = len(families.groups_of(self._own_inputs(0)))
        for step in range(growing.STEPS):
            for number in range(count):
                self._add_larger((step * count + number) % self.seeds, number, step, level)
        if len(self.cases) > start and count > 1 and level >= len(SMALL):
            self._add_all_larger()
        if len(self.cases) == start:
            self.skipped[families.LARGER] = "the reference takes no larger size"
        return {"cases": self._list(start), "skipped": self.skipped}

    def _add_larger(self, seed: int, number: int, step: int, level: int) -> bool:
        inputs = self._own_inputs(seed)
        groups = families.groups_of(inputs)
        if number >= len(groups):
            return False
        group = groups[number]
        sizes = growing.larger_sizes(group.size)
        if step >= len(sizes):
            return False
        for attempt in dict.fromkeys((level, 0)):
            base = self._cut(inputs, attempt, group)
            if growing.elements_after(base, group, sizes[step]) > self.most_elements:
                continue
            for given in self._grown(base, group, sizes[step], seed):
                if self._add(families.LARGER, seed, given, finite=True):
                    self._mark_larger(number, sizes[step], group.size)
                    return True
        return False

    def _add_all_larger(self) -> None:
        """All sizes grown at once: a grid with several programs along each of its sides."""
        given = inputs = self._own_inputs(1)
        now = before = 1
        for group in families.groups_of(inputs):
            size = growing.larger_sizes(group.size)[1]
            if growing.elements_after(given, group, size) > self.most_elements:
                continue
            versions = map(self._accepted, self._grown(given, group, size, 1))
            taken = next((item for item in versions if item is not None), None)
            if taken is not None:
                given, now, before = taken, now * size, before * group.size
        if given is not inputs and self._add(families.LARGER, 1, given, finite=True):
            self._mark_larger(-1, now, before)

    def _grown(
        self, inputs: list[Any], group: families.Group, size: int, seed: int
    ) -> list[list[Any]]:
        """Larger inputs; none where torch cannot pick elements of their format."""
        try:
            return growing.grown(inputs, group, size, seed)
        except (RuntimeError, NotImplementedError):
            return []

    def _mark_larger(self, group: int, size: int, own_size: int) -> None:
        case = self.cases[-1]
        case.resized, case.group, case.size, case.own_size = True, group, size, own_size

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
        except REFUSED:
            return False
        steps = group.size - 1
        return all(
            len(a) == len(b) == len(c)
            and all((x - y) % steps == 0 and z == y - (x - y) // steps
                    for x, y, z in zip(a, b, c, strict=True))
            for a, b, c in zip(whole, one, none, strict=True)
        )  # fmt: skip
