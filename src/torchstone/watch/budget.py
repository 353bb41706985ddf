"""What watching may cost: beyond it, fewer steps are read."""

from __future__ import annotations

from torchstone.core.text import Text

_FREE_SECONDS = 1e-3  # a millisecond for each step is nobody's budget
_LOOK_EVERY = 50
_RAREST = 64


class Budget:
    """Counts what watching takes, and says how many optimizer steps may be read."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.every = 1
        """Two of every `2 * every` optimizer steps are read."""
        self.own_seconds = 0.0
        self.all_seconds = 0.0
        self._since = 0

    def is_due(self, beat: int) -> bool:
        """Two in a row: what changed between them can only be seen from both."""
        return beat % (2 * self.every) < 2

    def look(self, step: int) -> Text | None:
        """Now and then: read less often when watching takes more of a step than it may."""
        if step % _LOOK_EVERY or self.all_seconds <= 0:
            return None
        share = self.own_seconds / self.all_seconds
        dear = self.own_seconds > _FREE_SECONDS * (step - self._since)
        settled = step > _LOOK_EVERY  # the first steps load and build things
        self.own_seconds = self.all_seconds = 0.0
        self._since = step
        if not (settled and dear and share > self.share and self.every < _RAREST):
            return None
        self.every *= 2
        return Text(
            f"watching takes {share:.1%} of a step, more than {self.share:.1%}: "
            f"reading two of every {2 * self.every} optimizer steps",
            f"监控占一步的 {share:.1%}，超过 {self.share:.1%}："
            f"改为每 {2 * self.every} 次优化器更新读取两次",
        )
