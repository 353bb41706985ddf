"""Clocks for tests: what a watch does must not depend on how busy the machine is."""

from __future__ import annotations

from torchstone.watch.clock import Clock

STILL = Clock(lambda: 0.0, lambda: 0.0)
"""No time passes: steps are judged thirty-two at a time, and every step is read."""


class Ticking:
    """Every step takes as long as it is told to, and so does what the watch does in it."""

    def __init__(self, step_seconds: float, own_seconds: float) -> None:
        self._step, self._own = step_seconds, own_seconds
        self._wall = self._work = 0.0
        self.clock = Clock(self._now, self._at_work)

    def pass_step(self) -> None:
        """The program has taken one step."""
        self._wall += self._step

    def _now(self) -> float:
        return self._wall

    def _at_work(self) -> float:
        self._work += self._own
        return self._work
