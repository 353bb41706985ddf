"""Cases of other sizes than the problem's own: smaller ones, equal ones, one and none."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from torchstone.kernels.harness.inputs import lines
from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.planning import REFUSED, Planner
from torchstone.kernels.harness.reference.running import as_tensor, leaves_of

_MOST_SIDES = 12
_MOST_EQUAL = 8
_PAIR = 2


class SizePlanner(Planner):
    """A planner that changes sizes, too."""

    def plan(self, level: int, size_level: int, most: int) -> dict[str, Any]:
        """All families; levels beyond the last leave the sizes alone.

        For a costly kernel `most` is how many cases of a family are enough; 0 for all others.
        """
        start = len(self.cases)
        wanted, level = level, self._affordable(level)
        size_level = self._affordable(size_level)
        for seed in range(self.seeds):
            base = self._cut(self._own_inputs(seed), level)
            for family in families.VALUES:
                if seed < self._enough(family, most):
                    self._plan_values(family, seed, base)
        if not most:  # cheap enough for every side of every array
            self._plan_other_sides(level)
        for family in families.SMALLER:
            self._plan_sizes(family, size_level, most)
        cut = level != wanted
        return {"cases": self._list(start), "skipped": self.skipped, "cut": cut}

    def _enough(self, family: str, most: int) -> int:
        return families.FEWEST.get(family, most) if most else self.seeds

    def _plan_other_sides(self, level: int) -> None:
        """Lines along sides that the seeds did not reach."""
        count = len(lines.sides(self._cut(self._own_inputs(0), level)))
        for turn in range(self.seeds, min(count, _MOST_SIDES)):
            base = self._cut(self._own_inputs(turn % self.seeds), level)
            for family in ("lines", "masked"):
                self._plan_values(family, turn % self.seeds, base, turn)

    def _plan_sizes(self, family: str, level: int, most: int) -> None:
        made = 0
        enough = min(self._enough(family, most), self.seeds)
        if family == "equal":
            count = len(families.groups_of(self._own_inputs(0)))
            count = min(count * (count - 1) // 2 + (count > _PAIR), _MOST_EQUAL)
            wanted = range(min(count, enough) if most else count)
        else:
            count = len(families.groups_of(self._cut(self._own_inputs(0), level)))
            wanted = range(enough if most else max(enough, count))
        for turn in wanted:
            seed = turn % self.seeds
            if family == "equal":
                made += self._add_equal(seed, turn, level)
                continue
            inputs = self._cut(self._own_inputs(seed), level)
            chosen = families.groups_of(inputs)
            if not chosen:
                break
            made += self._add_sized(family, seed, inputs, chosen[turn % len(chosen)], turn)
        if not made:
            self.skipped[family] = "the reference takes no other size"

    def _add_sized(
        self, family: str, seed: int, inputs: list[Any], group: families.Group, turn: int
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
                given = self._accepted(smaller) or given
        if size == 0 and not self._sound(inputs, group, given):
            return 0
        if size == 1 and self._accepted(families.resized(inputs, group, _PAIR)) is None:
            return 0  # one fits beside any size by broadcasting; the reference has no say in it
        return self._add_resized(family, seed, given)

    def _add_equal(self, seed: int, turn: int, level: int) -> int:
        """Sizes that differ in the problem made equal: all of them first, then two and two.

        A kernel that tells sides apart by their lengths is right until two of them agree.
        """
        inputs = self._own_inputs(seed)
        groups = families.groups_of(inputs)
        together = list(itertools.combinations(groups, _PAIR))
        alike = [*([groups] if len(groups) > _PAIR else []), *together][turn]
        size = min(group.size for group in alike)
        for group in alike:
            if group.size > size:
                inputs = families.resized(inputs, group, size)
        return self._add_resized("equal", seed, self._cut(inputs, level))

    def _add_resized(self, family: str, seed: int, given: list[Any]) -> int:
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
        except REFUSED:
            return False
        steps = group.size - 1
        return all(
            len(a) == len(b) == len(c)
            and all((x - y) % steps == 0 and z == y - (x - y) // steps
                    for x, y, z in zip(a, b, c, strict=True))
            for a, b, c in zip(whole, one, none, strict=True)
        )  # fmt: skip
