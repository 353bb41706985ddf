"""What the kernels of one call did: launches, programs, faults; shared by all implementations."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

MOST_KEPT = 8


@dataclass(slots=True)
class Launches:
    """Counted and found during one call. `ghost` makes every kernel do nothing."""

    ghost: bool = False
    order: str = "forward"
    launches: int = 0
    programs: int = 0
    work: int = 0
    """Interpreted operations: a measure of effort that is the same on every machine."""
    faults: list[dict[str, object]] = field(default_factory=list)

    def start(self) -> None:
        """Begin a new call."""
        self.launches = self.programs = self.work = 0
        self.faults = []

    def fault(self, kind: str, where: str, elements: int) -> None:
        """Keep a fault; the same one in every program is kept once."""
        for known in self.faults:
            if known["kind"] == kind and known["where"] == where:
                return
        if len(self.faults) < MOST_KEPT:
            self.faults.append({"kind": kind, "where": where, "elements": elements})

    def permutation(self, count: int) -> list[int]:
        """The order in which programs run."""
        order = list(range(count))
        if self.order == "reversed":
            order.reverse()
        elif self.order == "shuffled":
            random.Random(count).shuffle(order)
        return order
