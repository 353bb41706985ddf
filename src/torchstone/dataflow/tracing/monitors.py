"""What a run needs besides its graph: memory over time, and time by function."""

from __future__ import annotations

import os
import sys
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

_STATM = Path("/proc/self/statm")


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """The memory of the process at one moment."""

    seconds: float
    resident_bytes: int
    python_bytes: int | None = None
    """As tracemalloc counts it; None where it does not run."""


class MemoryProfiler:
    """Snapshots of memory. `trace_allocations` runs tracemalloc as well, which makes Python code
    two to four times slower."""

    def __init__(
        self, trace_allocations: bool = False, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.snapshots: list[MemorySnapshot] = []
        self._clock = clock
        self._trace_allocations = trace_allocations
        self._started = False

    def start(self) -> None:
        if self._trace_allocations and not tracemalloc.is_tracing():
            tracemalloc.start()
            self._started = True
        self.take_snapshot()

    def stop(self) -> None:
        self.take_snapshot()
        if self._started:
            tracemalloc.stop()
            self._started = False

    def take_snapshot(self) -> MemorySnapshot:
        python = tracemalloc.get_traced_memory()[0] if tracemalloc.is_tracing() else None
        made = MemorySnapshot(self._clock(), resident_bytes(), python)
        self.snapshots.append(made)
        return made

    @property
    def peak_bytes(self) -> int:
        return max((item.resident_bytes for item in self.snapshots), default=0)


def resident_bytes() -> int:
    """Resident memory of this process; the largest so far where the system has no /proc."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return _largest_so_far()


def _largest_so_far() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


@dataclass(frozen=True, slots=True)
class FunctionTime:
    """All calls of one function."""

    calls: int
    seconds: float
    longest: float


class PerformanceMonitor:
    """Time by function."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = defaultdict(list)

    def record(self, name: str, seconds: float) -> None:
        self._seconds[name].append(seconds)

    def summary(self) -> Mapping[str, FunctionTime]:
        """The slowest first."""
        made = {
            name: FunctionTime(len(times), sum(times), max(times))
            for name, times in self._seconds.items()
        }
        return dict(sorted(made.items(), key=lambda item: -item[1].seconds))
