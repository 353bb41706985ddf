"""What watching may cost: where steps are too short for it, fewer of them are read."""

from __future__ import annotations

import math

from torchstone.core.text import Text

_FREE_SECONDS = 1e-3  # a millisecond for each step is within anybody's budget
_LOADED = 4  # the first steps load and build things
_FIRST_LOOKS = (12, 24)
_LOOK_EVERY = 50
_RAREST = 64
_EASY = 0.25  # of the budget: then twice as many steps can be read, with a margin


class Budget:
    """Counts what watching takes, and says how many optimizer steps are read."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.every = 1
        """Two of every `2 * every` optimizer steps are read."""
        self.own_seconds = 0.0
        self.all_seconds = 0.0
        self._past = (0.0, 0.0)
        """Of the own and of all seconds, what was counted up to the last look."""
        self._since = 0
        self._step_seconds = 0.0

    def add(self, own: float, whole: float) -> None:
        """Seconds that watching took, and that a step took as a whole."""
        self.own_seconds += own
        self.all_seconds += whole

    def is_due(self, update: int) -> bool:
        """Two in a row: what changed between them can only be seen from both."""
        return update % (2 * self.every) < 2

    def look(self, step: int) -> bool:
        """Soon after the start, then now and then: read as many steps as the budget allows.

        True where that is another number than before.
        """
        if step == _LOADED:
            self._start_again(step)
            self._past = (0.0, 0.0)
        if (step not in _FIRST_LOOKS and step % _LOOK_EVERY) or self.all_seconds <= 0:
            return False
        count, own = step - self._since, self.own_seconds
        share, before = own / self.all_seconds, self.every
        self._step_seconds = self.all_seconds / count
        self._start_again(step)
        if own > _FREE_SECONDS * count and share > self.share:
            times = 2 ** math.ceil(math.log2(share / self.share))
            self.every = min(before * times, _RAREST)
        elif before > 1 and share < _EASY * self.share:
            self.every = before // 2
        return self.every != before

    @property
    def whole_run(self) -> tuple[float, float]:
        """Seconds that watching took, and all seconds, since the first steps."""
        own, whole = self._past
        return own + self.own_seconds, whole + self.all_seconds

    def _start_again(self, step: int) -> None:
        self._past = self.whole_run
        self.own_seconds = self.all_seconds = 0.0
        self._since = step

    @property
    def text(self) -> Text:
        """Which steps are read, and why not all; empty where all are."""
        if self.every == 1:
            return Text("", "")
        step = f"{self._step_seconds * 1e3:.2g} ms"
        return Text(
            f"two of every {2 * self.every} optimizer steps are read: a step takes {step}, and "
            f"reading each would take more than {self.share:.0%} of it",
            f"每 {2 * self.every} 次优化器更新读取两次：一步仅 {step}，逐步读取的开销会超过其 {self.share:.0%}",
        )
