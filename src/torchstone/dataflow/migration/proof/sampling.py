"""Some calls in production are computed on both sides; an entry that differs is taken out."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field

from torchstone.dataflow.migration.specification import Case

RATE = 1 / 256
"""Share of calls that are verified: with both sides equally fast it costs 0.4 % of the time."""


@dataclass(slots=True)
class Sampler:
    """Decides which calls are verified, and remembers the entries that failed.

    Its random numbers are its own: the program's generators are not touched.
    """

    rate: float = RATE
    seed: int | None = None
    _random: random.Random = field(init=False)
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _quarantined: dict[tuple[str, str], str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def wants(self, name: str, case: Case) -> bool:
        """The first call of every case, and a random share of the others."""
        with self._lock:
            key = (name, case.name)
            if self.rate > 0 and key not in self._seen:
                self._seen.add(key)
                return True
            return self._random.random() < self.rate

    def quarantine(self, name: str, case: Case, reason: str) -> None:
        with self._lock:
            self._quarantined.setdefault((name, case.name), reason)

    def reason(self, name: str, case: Case) -> str:
        """Why calls of this case no longer move; empty if they do."""
        return self._quarantined.get((name, case.name), "")

    def quarantined(self) -> dict[str, str]:
        with self._lock:
            return {f"{name} ({case})": text for (name, case), text in self._quarantined.items()}
