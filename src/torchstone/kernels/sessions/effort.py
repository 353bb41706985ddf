"""How long a process has worked: CPU time, and time in which it slept, never time in which it waited its turn.

On a loaded machine the same call takes longer by the clock and as long by this measure, so that a
verdict does not depend on what else runs.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_CPU_CLOCK = 2
"""The kind of clock that counts what the scheduler gave to all threads of a process."""
_USER, _SYSTEM = 11, 12
"""Fields of /proc/*/stat after the name of the program."""


@dataclass(slots=True)
class Effort:
    """What a process has spent since it was asked something."""

    pids: tuple[int, ...]
    """The process and those that work for it."""
    limit_seconds: float
    _cpu_before: float = -1.0
    _asleep: float = 0.0
    _looked: float = 0.0

    def is_up(self) -> bool:
        """Look once more: has it worked, or slept, for longer than it may?"""
        now = time.monotonic()
        found = [_state_of(pid) for pid in self.pids]
        state = "S" if all(state in ("S", "") for state, _ in found) else "R"
        cpu = sum(seconds for _, seconds in found)
        if self._cpu_before < 0:
            self._cpu_before, self._looked = cpu, now
        if state == "S":  # or a system that does not say
            self._asleep += now - self._looked
        self._looked = now
        return cpu - self._cpu_before + self._asleep > self.limit_seconds


def begin_effort(pids: tuple[int, ...], limit_seconds: float) -> Effort:
    """Measure from now on."""
    effort = Effort(pids, limit_seconds)
    effort.is_up()
    return effort


def cpu_seconds_of(pid: int) -> float:
    """CPU time of a process so far; 0 where the system does not say."""
    return _state_of(pid)[1]


def clock_of(pid: int) -> float:
    """CPU time of a process by its own clock, to the nanosecond; read from outside.

    The wall clock where the system keeps no such clock.
    """
    try:
        return time.clock_gettime((~pid << 3) | _CPU_CLOCK)
    except (AttributeError, OSError):
        return time.perf_counter()


def _state_of(pid: int) -> tuple[str, float]:
    """`S` when all its threads sleep, and the CPU time of all of them."""
    try:
        whole = _fields(Path(f"/proc/{pid}/stat"))
        states = {_fields(item / "stat")[0] for item in Path(f"/proc/{pid}/task").iterdir()}
    except (OSError, IndexError):
        return "", 0.0
    cpu = (int(whole[_USER]) + int(whole[_SYSTEM])) / _TICKS
    return ("S" if states == {"S"} else "R"), cpu


def _fields(path: Path) -> list[str]:
    return path.read_text("latin-1").rpartition(")")[2].split()
