"""Cases beyond the problem's own sizes: longer, whole blocks, sums that outgrow a format, every length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torchstone.kernels.harness.inputs import growing, scales, whole
from torchstone.kernels.harness.inputs import value_families as families
from torchstone.kernels.harness.inputs.planning import REFUSED, SMALL, SMALLEST
from torchstone.kernels.harness.inputs.sizing import SizePlanner
from torchstone.kernels.harness.inputs.strides import UNALIGNED
from torchstone.kernels.harness.reference.habits import steps_of


class LargePlanner(SizePlanner):
    """A planner that makes sizes larger, too, and walks through all of the small ones."""

    def larger(self, level: int, long: int) -> dict[str, Any]:
        """Every size beyond the problem's own, one after the other, and then all at once.

        Beyond `long`, too, unless it is 0, where the reference takes no more steps for it.
        """
        start = len(self.cases)
        count = len(families.groups_of(self._own_inputs(0)))
        for step in range(growing.STEPS):
            for number in range(count):
                if step == growing.STEPS - 1:
                    self._add_heavy(number)
                self._add_larger((step * count + number) % self.seeds, number, step, level)
        for number in range(count):
            self._add_held(number, level)
        if len(self.cases) > start and count > 1 and level >= len(SMALL):
            self._add_all_larger()
        self._add_blocks(level)
        for number in range(count if long and self.reference.framework == "torch" else 0):
            self._add_long(number, long)
        if len(self.cases) == start:
            self.skipped[families.LARGER] = "the reference takes no larger size"
        return {"cases": self._list(start), "skipped": self.skipped}

    def _add_larger(self, seed: int, number: int, step: int, level: int) -> None:
        for given, group in self._all_grown(seed, number, step, level):
            if self._add_shaped(seed, number, step, given, group):
                return

    def _all_grown(
        self, seed: int, number: int, step: int, level: int
    ) -> Iterator[tuple[list[Any], families.Group]]:
        """The inputs with one size grown by a step, beside the largest other sizes first."""
        inputs = self._own_inputs(seed)
        groups = families.groups_of(inputs)
        if number >= len(groups):
            return
        group = groups[number]
        sizes = growing.larger_sizes(group.size)
        if step >= len(sizes):
            return
        for attempt in dict.fromkeys((SMALLEST if level < len(SMALL) else level, level, 0)):
            base = self._cut(inputs, attempt, group)
            if growing.elements_after(base, group, sizes[step]) > self.most_elements:
                continue
            for given in self._grown(base, group, sizes[step], seed):
                yield given, group

    def _add_shaped(
        self, seed: int, number: int, step: int, given: list[Any], group: families.Group
    ) -> bool:
        """Grown inputs with slow ramps on half of their lines, and as extreme as they can be."""
        if self.all_whole:
            for turn in range(whole.WAYS if step == growing.STEPS - 1 else 0):
                if self._add(families.LARGER, seed, whole.extreme(given, self.ranges, turn)):
                    self._mark_larger(number)
        for version in (growing.ramped(given, group, step), given):
            if self._add(families.LARGER, seed, version, finite=True):
                self._mark_larger(number)
                return True
        return False

    def _add_heavy(self, number: int) -> None:
        """Whole numbers, so many and so large that their sum has more bits than a float keeps."""
        group = families.groups_of(self._own_inputs(0))[number]
        if not self.all_whole or not self._sums(number, group):
            return
        for given in self._grown_alone(number, growing.prime_above(growing.HEAVY)):
            if self._add(families.LARGER, 0, whole.heavy(given, self.ranges, group.places)):
                self._mark_larger(growing.APART)
                return

    def _sums(self, number: int, group: families.Group) -> bool:
        """The side is gone from the outputs: what stood along it has met in them."""
        grown = self._grown_alone(number, group.size + 1)
        try:
            one, two = (
                [item.shape for item in self.oracle.outputs(given, 0)]
                for given in (self._cut(self._own_inputs(0), SMALLEST, group), *grown[-1:])
            )
        except (ValueError, *REFUSED):
            return False
        return one == two

    def _add_held(self, number: int, level: int) -> None:
        """One array after the other holds its value along the grown side: nothing is forgotten."""
        step = len(growing.larger_sizes(families.groups_of(self._own_inputs(0))[number].size)) - 1
        for given, group in self._all_grown(0, number, step, min(level, 0)):
            made = growing.held(given, group)[: 1 if level < len(SMALL) else None]
            added = [self._add(families.LARGER, 0, item, finite=True, calm=True) for item in made]
            for case in self.cases[len(self.cases) - sum(added) :]:
                case.resized, case.group = True, number
            if any(added):
                return

    def _grown_alone(self, number: int, size: int) -> list[list[Any]]:
        """One size grown beside the smallest of all others; none where that is too much."""
        inputs = self._own_inputs(0)
        groups = families.groups_of(inputs)
        if number >= len(groups):
            return []
        base = self._cut(inputs, SMALLEST, groups[number])
        if growing.elements_after(base, groups[number], size) > growing.LONG_ELEMENTS:
            return []
        return self._grown(base, groups[number], size, 0)

    def _add_long(self, number: int, long: int) -> None:
        """One size beyond a very long one, beside small ones."""
        group = families.groups_of(self._own_inputs(0))[number]
        large = self._grown_alone(number, growing.prime_above(long))[-1:]
        if not large or self._walks(number):
            return
        if self.all_whole:
            large = [whole.heavy(large[0], self.ranges, group.places)]
        if self._add(families.LARGER, 0, large[0], finite=True):
            self._mark_larger(number)

    def _walks(self, number: int) -> bool:
        """The reference takes more steps where this size is larger, or does not take it."""
        inputs = self._own_inputs(0)
        group = families.groups_of(inputs)[number]
        small = self._grown_alone(number, group.size + 1)[-1:]
        try:
            both = [steps_of(self.reference, item) for item in
                    (self._cut(inputs, SMALLEST, group), *small)]  # fmt: skip
        except REFUSED:
            return True
        return len(both) == 1 or both[0] != both[1]

    def _add_all_larger(self) -> None:
        """All sizes grown at once: a grid with several programs along each of its sides."""
        given = inputs = self._own_inputs(1)
        for group in families.groups_of(inputs):
            size = growing.larger_sizes(group.size)[1]
            if growing.elements_after(given, group, size) > self.most_elements:
                continue
            versions = map(self._accepted, self._grown(given, group, size, 1))
            given = next((item for item in versions if item is not None), given)
        if given is not inputs and self._add(families.LARGER, 1, given, finite=True):
            self._mark_larger(-1)

    def _add_blocks(self, level: int) -> None:
        """All sizes whole blocks at once, with one corner far larger than the rest.

        What is written for even sides, or for sides that a vector or a tile divides, runs only
        where all of them are.
        """
        costly = level < len(SMALL)
        for turn in range(1 if costly else growing.BLOCK_TURNS):
            seed = turn % self.seeds
            given = self._blocks(seed, growing.BLOCK >> (costly or turn % 2))
            if given is None:
                return
            for version in (*scales.graded(given, turn), given):
                if self._add(families.LARGER, seed, version, finite=True, calm=True):
                    self._mark_larger(-1)
                    break

    def _blocks(self, seed: int, block: int) -> list[Any] | None:
        """The inputs with every size the next multiple of a block, as far as there is room."""
        given = inputs = self._own_inputs(seed)
        # the last sizes first: where there is no room for more, a batch stays as small as it is
        for group in reversed(families.groups_of(inputs)):
            size = -(-group.size // block) * block
            if size == group.size:
                continue
            if growing.elements_after(given, group, size) > growing.BLOCK_ELEMENTS:
                continue
            versions = map(self._accepted, self._grown(given, group, size, seed))
            given = next((item for item in versions if item is not None), given)
        return None if given is inputs else given

    def lengths(self, longest: int) -> dict[str, Any]:
        """One size after the other at every length up to the longest; without one, at a few.

        A place that is computed through a rounded quotient, or a tail that one residue lacks, is
        wrong at lengths that nobody would think of.
        """
        start = len(self.cases)
        count = len(families.groups_of(self._own_inputs(0)))
        last = min(longest, growing.MOST_LENGTHS // max(count, 1))
        for number in range(count):
            # where the reference walks along a side, every length costs it as many steps
            apart = growing.WALKED_APART if last and self._walks(number) else 1
            sizes = range(2, last + 1, apart) if last else growing.FEW_LENGTHS
            short = [self._beside(number, seed) for seed in range(self.seeds)]
            for turn, size in enumerate(_in_turns(sizes)):
                self._add_length(number, size, turn, short[turn % self.seeds])
        return {"cases": self._list(start), "skipped": self.skipped}

    def _beside(self, number: int, seed: int) -> tuple[families.Group, list[Any]] | None:
        """One of the sizes, and inputs in which all others are small."""
        inputs = self._own_inputs(seed)
        groups = families.groups_of(inputs)
        if number >= len(groups):
            return None
        return groups[number], self._cut(inputs, 0, groups[number])

    def _add_length(
        self, number: int, size: int, turn: int, beside: tuple[families.Group, list[Any]] | None
    ) -> None:
        if beside is None or beside[0].size == size:
            return
        seed = turn % self.seeds
        group, base = beside
        if size < group.size:
            made = [families.resized(base, group, size)]
        elif growing.elements_after(base, group, size) <= self.most_elements:
            made = self._grown(base, group, size, seed)
        else:
            return
        for given in made:
            shaped = growing.ramped(given, group, turn) if turn % 2 else given
            if self._add(families.LENGTHS, seed, shaped, finite=True):
                self._mark_larger(number)
                if turn // 2 % 2:  # tails of every length, off a boundary of memory
                    self.cases[-1].layout = UNALIGNED
                return

    def _grown(
        self, inputs: list[Any], group: families.Group, size: int, seed: int
    ) -> list[list[Any]]:
        """Larger inputs; none where torch cannot pick elements of their format."""
        try:
            return growing.grown(inputs, group, size, seed, self._own_inputs(seed))
        except (RuntimeError, NotImplementedError):
            return []

    def _mark_larger(self, group: int) -> None:
        case = self.cases[-1]
        case.resized, case.group = True, group


def _in_turns(sizes: Sequence[int]) -> list[int]:
    """Short and long in turns, so that what is kept from a longer call meets a shorter one."""
    half = (len(sizes) + 1) // 2
    pairs = zip(sizes[:half], [*reversed(sizes[half:]), 0], strict=False)
    return [size for pair in pairs for size in pair if size]
