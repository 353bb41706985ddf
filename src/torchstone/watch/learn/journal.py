"""What the baselines of a run were given, in order: enough to judge the run again.

Baselines write down every value they judge and every event that changes what they know. A replay
hands the entries of a recorded run to baselines that were made in the same way, with the same or
with other thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Change = Literal["forget", "restart", "warmup", "columns"]


@dataclass(frozen=True, slots=True)
class Judged:
    """Values that a series of baselines judged at a step."""

    series: int
    step: int
    stretch: float
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Changed:
    """Something that changed what a series of baselines knows."""

    series: int
    change: Change
    numbers: tuple[int, ...] = ()
    """The steps of warm-up, or the columns that begin again."""


@dataclass(frozen=True, slots=True)
class Alarmed:
    """A check that is not learned found something wrong."""

    step: int
    signal: str
    severity: int
    """Its rank: 0 is the worst."""


Entry: TypeAlias = Judged | Changed | Alarmed


class Journal(Protocol):
    """Takes entries in the order in which they are judged."""

    def enter(self, entry: Entry) -> None: ...
