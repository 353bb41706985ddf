"""What happened to the calls: moved, left with the original and why, bytes and seconds."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from torchstone.core.text import Text


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


@dataclass(slots=True)
class FunctionCount:
    """The calls of one function."""

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
    ratios: list[float] = field(default_factory=list)
    """Moved time over the original's, of verified calls: what moving gains or costs."""


@dataclass(slots=True)
class Ledger:
    """Counts and fallbacks of one migrator; threads may write at once."""

    functions: dict[str, FunctionCount] = field(default_factory=dict)
    _fallbacks: dict[tuple[str, str, str], Fallback] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, name: str) -> FunctionCount:
        with self._lock:
            return self.functions.setdefault(name, FunctionCount())

    def fall_back(self, name: str, reason: Text, edit: Text, line: str, seconds: float) -> bool:
        """Note it; True when this line falls back for this reason for the first time."""
        count = self.of(name)
        with self._lock:
            count.fallback += 1
            key = (name, reason.en, line)
            known = self._fallbacks.get(key)
            calls, before = (known.calls, known.seconds) if known else (0, 0.0)
            self._fallbacks[key] = Fallback(name, reason, line, edit, calls + 1, before + seconds)
            return known is None

    def fallbacks(self) -> tuple[Fallback, ...]:
        """The costliest first."""
        with self._lock:
            return tuple(
                sorted(self._fallbacks.values(), key=lambda item: (-item.seconds, -item.calls))
            )

    def total(self) -> FunctionCount:
        with self._lock:
            counts = list(self.functions.values())
        return FunctionCount(
            **{
                name: sum(getattr(count, name) for count in counts)
                for name in FunctionCount.__dataclass_fields__
                if name != "ratios"
            }
        )
