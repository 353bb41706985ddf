"""Which larger sizes are tried: the cheapest first, until an interpreter has done enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

MOST_WORK = 5000
"""Larger sizes are tried until this many interpreted operations are spent on them."""


@dataclass(slots=True)
class Larger:
    """Cases that wait, by the size that grows in them, and the work that each size has made."""

    waiting: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    known: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    left: int = MOST_WORK

    @classmethod
    def plan(cls, cases: list[dict[str, Any]], size: int, work: int) -> Larger:
        """`work` was done at `size`; at a size of 0 it was done at the problem's own."""
        made = cls()
        for case in cases:
            made.waiting.setdefault(case["group"], []).append(case)
            made.known.setdefault(case["group"], [(size or case["own_size"], work)])
        return made

    def take(self) -> dict[str, Any] | None:
        """The case with the least expected work; None when even that is too much."""
        if not self.waiting:
            return None
        group = min(self.waiting, key=lambda item: (self.expected(self.waiting[item][0]), item))
        if self.expected(self.waiting[group][0]) > self.left:
            return None
        case = self.waiting[group].pop(0)
        if not self.waiting[group]:
            del self.waiting[group]
        return case

    def expected(self, case: dict[str, Any]) -> float:
        """Interpreted operations: they follow the size, or as the last two sizes have shown."""
        known = self.known[case["group"]]
        size, work = known[-1]
        power = 1.0
        if len(known) > 1 and size > known[-2][0] and known[-2][1]:
            grew = math.log(max(work, 1) / known[-2][1])
            power = max(grew / math.log(size / known[-2][0]), 0.0)
        return float(work * (case["size"] / max(size, 1)) ** power)

    def done(self, case: dict[str, Any], work: int) -> None:
        """Keep what a case has cost."""
        self.known[case["group"]].append((case["size"], work))
        self.left -= work

    @property
    def left_out(self) -> int:
        return sum(map(len, self.waiting.values()))
