"""What was measured at each place: errors that came in, were made, and went out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from torchstone.tensors.compare.limits import Limits

_GROWN = 1.5
"""A value is listed among those at which the error grew if it makes the largest error so many times larger."""


@dataclass(slots=True)
class OperatorErrors:
    """The largest errors of one operator at one place; all relative to the norm of its result."""

    operator: str
    order: int
    calls: int = 0
    inherited: float = 0.0
    """What the errors of the inputs became."""
    local: float = 0.0
    """What the operator itself added by rounding."""
    total: float = 0.0
    amplification: float = 0.0
    """Inherited error over the largest error of the inputs."""
    flips: int = 0
    """Integers, masks and branches that came out otherwise."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The error of one value that left a place, and the largest one of what it was made from."""

    entering: float = 0.0
    leaving: float = 0.0

    def growth(self, unit: float) -> float:
        """How many times larger the error became; a rounding of the inputs is always there."""
        return self.leaving / max(self.entering, unit)


@dataclass(slots=True)
class SiteErrors:
    """One place of the program: the errors that entered from elsewhere and left again."""

    order: int
    steepest: Passage = Passage()
    """The error that grew most. A loop gives a line its own errors of earlier rounds: the largest ones that
    entered and left over all rounds say nothing about growth."""
    operators: dict[str, OperatorErrors] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Broken:
    """Where a number first became NaN or infinite while the reference stayed finite."""

    site: int
    operator: str
    order: int
    because: int
    """The site that flushed a divisor to zero, if that is why; else the same site."""


class Ledger:
    """Everything that one run measured."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._largest = limits.unit
        self.growth: list[tuple[int, Passage]] = []
        """The values of the forward pass, in their order, whose error was larger than any before; with their places."""
        self.sites: dict[int, SiteErrors] = {}
        self.broken: list[Broken] = []
        self.unsupported: dict[str, str] = {}
        """Operators that have no high-precision form, with the reason."""
        self.simulated: dict[str, str] = {}
        """Operators without a low-precision kernel here: run in fp32 and rounded, with the reason."""
        self.followed: dict[str, int] = {}
        """Operators whose result has a shape that the data decide: the low run was followed."""
        self.count = 0
        """Operators seen."""

    def site(self, number: int) -> SiteErrors:
        found = self.sites.get(number)
        if found is None:
            found = self.sites[number] = SiteErrors(self.count)
        return found

    def operator(self, number: int, name: str) -> OperatorErrors:
        site = self.site(number)
        found = site.operators.get(name)
        if found is None:
            found = site.operators[name] = OperatorErrors(name, self.count)
        return found

    def leave(self, producer: int, phase: str, entering: float, leaving: float) -> None:
        """An error leaves the place that made it; of small ones nobody asks how much they grew."""
        if producer < 0:
            return
        site, unit = self.site(producer), self._limits.unit
        if phase == "forward" and math.isfinite(leaving) and leaving > _GROWN * self._largest:
            self._largest = leaving
            self.growth.append((producer, Passage(entering, leaving)))
        if leaving > self._limits.suspicious(phase):
            passage = Passage(entering, leaving)
            if passage.growth(unit) > site.steepest.growth(unit):
                site.steepest = passage
