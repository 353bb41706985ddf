"""What was measured at each place: errors that came in, were made, and went out."""

from __future__ import annotations

from dataclasses import dataclass, field


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


@dataclass(slots=True)
class SiteErrors:
    """One place of the program: the error that enters from elsewhere and the error that leaves."""

    order: int
    entering: float = 0.0
    leaving: float = 0.0
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

    def __init__(self) -> None:
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

    def consume(self, producer: int, error: float) -> None:
        """An error leaves the place that made it."""
        if producer >= 0:
            site = self.site(producer)
            site.leaving = max(site.leaving, error)
