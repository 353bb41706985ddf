"""Which entries of a plan change the results: the plan is run again with half of them, and so on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torchstone.dataflow.plan import MigrationPlan

MOST_RUNS = 16
"""Runs of the program at most: enough to find one of 200 entries, or two of 30."""
STAYS = "cpu"


@dataclass(frozen=True, slots=True)
class Bisection:
    """Entries that change the results, alone or only together."""

    keys: tuple[str, ...]
    is_finished: bool = True
    """False where the runs did not suffice to tell them apart."""


def only(plan: MigrationPlan, keys: Sequence[str]) -> MigrationPlan:
    """The plan with nothing but these entries moved; the others are named and stay."""
    moved = {key: device if key in keys else STAYS for key, device in plan.context_device_map.items()}  # fmt: skip
    return replace(plan, context_device_map=moved)


def bisect(plan: MigrationPlan, differs: Callable[[MigrationPlan], bool]) -> Bisection:
    """`differs` says whether a run with a plan gives other results than one without."""
    moving = [key for key, device in plan.context_device_map.items() if device != STAYS]
    search = _Search(plan, differs)
    found = search.culprits(moving)
    return Bisection(tuple(found), not search.gave_up)


class _Search:
    def __init__(self, plan: MigrationPlan, differs: Callable[[MigrationPlan], bool]) -> None:
        self._plan = plan
        self._differs = differs
        self.runs = 0
        self.gave_up = False

    def culprits(self, keys: Sequence[str]) -> list[str]:
        """Of entries that change the results together."""
        if len(keys) < 2:
            return list(keys)
        middle = len(keys) // 2
        found: list[str] = []
        for half in (keys[:middle], keys[middle:]):
            if self._is_guilty(half):
                found += self.culprits(half)
        return found or list(keys)  # neither half alone: only together

    def _is_guilty(self, keys: Sequence[str]) -> bool:
        if self.runs >= MOST_RUNS:
            self.gave_up = True
            return True
        self.runs += 1
        return self._differs(only(self._plan, keys))
