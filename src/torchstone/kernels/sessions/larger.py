"""Which larger sizes are tried: a step of every size first, until an interpreter has done enough."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from torchstone.kernels.messages.facts import PlannedCase

MOST_WORK = 7000
"""Larger sizes are tried until this many interpreted operations are spent on them."""
MOST_LENGTHS_WORK = 1500
"""As much again for lengths that nothing but their number tells from others."""
MOST_SLENDER_WORK = 3800
"""As much for one side at a time, short and long, beside the shortest others."""
LONG = 65536
"""Counters of sixteen bits end here: what is compiled gets sizes beyond it."""
LONGEST = 100
"""What is compiled gets every length up to here: each costs some milliseconds."""
_BLOCK = 32
"""Up to here one block is likely to hold a side."""
_STEEP = 0.5
_APART = 1.5
"""Sizes nearer to each other than this show the edge of a block, and not how work grows."""

Sizes = Sequence[int]
"""All sizes of a problem that may change, in its own order."""


@dataclass(slots=True)
class Larger:
    """Cases that wait, by the size that grows in them, and the work that each size has made."""

    waiting: dict[int, list[PlannedCase]] = field(default_factory=dict)
    known: dict[int, list[tuple[Sizes, int]]] = field(default_factory=dict)
    powers: list[float | None] = field(default_factory=list)
    """How work follows each size, as far as smaller sizes have shown it."""
    left: int = MOST_WORK

    @classmethod
    def plan(
        cls, cases: list[PlannedCase], seen: Sequence[tuple[Sizes, int]],
        most_work: int = MOST_WORK,
    ) -> Larger:  # fmt: skip
        """`seen` are sizes with the work they made, first those that the others differ from."""
        made = cls(powers=powers_of(seen), left=most_work)
        for case in cases:
            made.waiting.setdefault(case.group, []).append(case)
            made.known.setdefault(case.group, [seen[0]])
        return made

    def take(self) -> PlannedCase | None:
        """The next step of the size that had the fewest; None when all are too costly.

        Sizes that made no work so far come first: one block may have held them. Then the cheapest.
        """
        order = sorted(
            (len(self.known[group]), self._is_steep(group), self.expected(cases[0]), group)
            for group, cases in self.waiting.items()
        )
        for _, _, work, group in order:
            if work <= self.left:
                case = self.waiting[group].pop(0)
                if not self.waiting[group]:
                    del self.waiting[group]
                return case
        return None

    def _is_steep(self, group: int) -> bool:
        return group < 0 or (self.powers[group] or 0.0) > _STEEP

    def expected(self, case: PlannedCase) -> float:
        """Interpreted operations: they follow what grows, or as the last two steps have shown."""
        known = self.known[case.group]
        sizes, work = known[-1]
        product = float(work)
        for i, (new, old) in enumerate(zip(case.sizes, sizes, strict=True)):
            power = self.powers[i] or 0.0
            if case.group in (i, -1):
                # a block may have held all of it so far: then the size made no difference yet
                power = max(power, 1.0) if len(known) == 1 else self._shown(known, i)
            product *= (max(new, 1) / max(old, 1)) ** power
        return product

    def _shown(self, known: list[tuple[Sizes, int]], size: int) -> float:
        """The power that the last two steps of a size have shown."""
        (before, less), (now, more) = known[-2:]
        if now[size] <= before[size] or not less:
            return 1.0
        return max(math.log(max(more, 1) / less) / math.log(now[size] / before[size]), 0.0)

    def done(self, case: PlannedCase, work: int) -> None:
        """Keep what a case has cost."""
        self.known[case.group].append((case.sizes, work))
        self.left -= work

    @property
    def left_out(self) -> int:
        return sum(map(len, self.waiting.values()))


@dataclass(slots=True)
class Slender:
    """What each side that stood alone has cost so far."""

    known: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    left: int = MOST_SLENDER_WORK

    def expected(self, case: PlannedCase) -> float:
        """Interpreted operations: as the side has grown so far, or a block at a time."""
        known = self.known.get(case.group, [])
        if not known:
            return 1.0
        size, work = known[-1]
        if case.size <= size or not work:
            return float(work)
        power = max((_power(*pair) for pair in itertools.combinations(known, 2)), default=1.0)
        by_blocks = max(1.0, case.size / max(_BLOCK, size))
        return float(max((case.size / size) ** power, by_blocks) * work)

    def done(self, case: PlannedCase, work: int) -> None:
        """Keep what a case has cost."""
        known = self.known.setdefault(case.group, [])
        known.append((case.size, work))
        known.sort()
        self.left -= work


def _power(one: tuple[int, int], two: tuple[int, int]) -> float:
    """With which power of the size the work has grown; none where nothing was done."""
    if not one[1] or not two[1] or one[0] == two[0]:
        return 0.0
    return min(max(math.log(two[1] / one[1]) / math.log(two[0] / one[0]), 0.0), 1.0)


def powers_of(seen: Sequence[tuple[Sizes, int]]) -> list[float | None]:
    """With which power of each size the work grows, from calls that differ in one size only."""
    base, work = seen[0]
    found: list[float | None] = [None] * len(base)
    for sizes, other in seen[1:]:
        moved = [i for i, (a, b) in enumerate(zip(sizes, base, strict=True)) if a != b]
        if len(moved) != 1 or not work or not other or not all(sizes):
            continue
        i = moved[0]
        if max(base[i], sizes[i]) >= _APART * min(base[i], sizes[i]):
            power = math.log(work / other) / math.log(base[i] / sizes[i])
            found[i] = max(found[i] or 0.0, power)
    return found
