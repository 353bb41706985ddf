"""What happened to the calls: moved, left with the original and why, bytes and seconds."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from torchstone.core.text import Text
from torchstone.dataflow.migration.tally import Key, Tally

RATIOS = 1000
"""Verified calls whose times are kept for the verdict: enough for a median."""
SEEN = 200
"""Contexts of calls that are kept to stand beside the keys of a plan that matched nothing."""

Figure = Literal[
    "calls", "migrated", "deferred", "fallback", "stayed", "verified", "bytes_to_device", "bytes_to_host", "migrated_seconds",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fallback:
    """Calls of one line that stayed with the original for one reason."""

    function: str
    reason: Text
    line: str
    """`file:line` of the call."""
    edit: Text
    """What to change so that the call can move; empty if nothing would help."""
    calls: int = 1
    seconds: float = 0.0
    """Spent in the attempt, not in the original."""


@dataclass(frozen=True, slots=True)
class FunctionCount:
    """The calls of one function. Every call is counted once as one of the next five."""

    calls: int = 0
    migrated: int = 0
    """Computed on the device by the call itself."""
    deferred: int = 0
    """Recorded in a loader, and computed on the device with the batch."""
    fallback: int = 0
    stayed: int = 0
    """Calls that the plan leaves where they are."""
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    migrated_seconds: float = 0.0
    verified: int = 0

    @property
    def unused(self) -> int:
        """Recorded, and nobody asked for the result."""
        return self.calls - self.migrated - self.deferred - self.fallback - self.stayed


@dataclass(slots=True)
class Ledger:
    """Counts and fallbacks of one migrator, of all processes and threads that it works in."""

    tally: Tally = field(default_factory=Tally)
    ratios: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Moved time over the original's, of verified calls of this process: what moving gains."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of_worker(cls, folder: str) -> Ledger:
        """In a spawned worker: its counts go to the main process."""
        return cls(Tally(Path(folder)))

    def add(self, name: str, figure: Figure, amount: float = 1) -> None:
        self.tally.add(("count", name, figure), amount)

    def add_ratio(self, name: str, ratio: float) -> None:
        self.add(name, "verified")
        with self._lock:
            if len(self.ratios[name]) < RATIOS:
                self.ratios[name].append(ratio)

    def note_context(self, key: str, context: str, line: str) -> None:
        """A call in this context was matched with this entry of the plan, or with none ("")."""
        self.tally.add(("context", key, context, line))

    def fall_back(self, name: str, reason: Text, edit: Text, line: str, seconds: float) -> bool:
        """Note it; True when this line falls back for this reason for the first time."""
        self.add(name, "fallback")
        where = (name, line, reason.en, reason.zh, edit.en, edit.zh)
        self.tally.add(("seconds", *where), seconds)
        return self.tally.add(("fallback", *where))

    def fallbacks(self) -> tuple[Fallback, ...]:
        """The costliest first."""
        counts = self.tally.total()
        found = [
            Fallback(
                key[1],
                Text(key[3], key[4]),
                key[2],
                Text(key[5], key[6]),
                int(calls),
                float(counts["seconds", *key[1:]]),
            )
            for key, calls in counts.items()
            if key[0] == "fallback"
        ]
        return tuple(sorted(found, key=lambda item: (-item.seconds, -item.calls)))

    def functions(self) -> dict[str, FunctionCount]:
        return _by_function(self.tally.total())

    def contexts(self) -> dict[str, dict[str, int]]:
        """Entry of the plan → contexts of the calls that it was matched with; "" for none."""
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for key, calls in self.tally.total().items():
            if key[0] == "context" and len(found[key[1]]) < SEEN:
                known = found[key[1]]
                known[key[2]] = known.get(key[2], 0) + int(calls)
        return dict(found)

    def lines(self) -> dict[str, list[str]]:
        """Entry of the plan → `file:line` of the calls that it was matched with."""
        found: dict[str, list[str]] = defaultdict(list)
        for key in self.tally.total():
            if key[0] == "context" and key[1]:
                found[key[1]].append(key[3])
        return dict(found)

    def total(self) -> FunctionCount:
        counts = list(self.functions().values())
        names = FunctionCount.__dataclass_fields__
        return FunctionCount(**{n: sum(getattr(count, n) for count in counts) for n in names})


def _by_function(counts: Counter[Key]) -> dict[str, FunctionCount]:
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for key, value in counts.items():
        if key[0] == "count":
            found[key[1]][key[2]] = value if key[2].endswith("seconds") else int(value)
    return {name: FunctionCount(**figures) for name, figures in sorted(found.items())}  # type: ignore[arg-type]
