"""One cause, one episode: the first alert opens it, and what follows from it is listed under it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from torchstone.core.finding import Severity
from torchstone.watch.alerts import Alert

_LONG_AGO = -(10**9)


@dataclass(slots=True)
class Episode:
    """The alerts of one cause, in the order in which they came."""

    number: int
    alerts: list[Alert] = field(default_factory=list)

    @property
    def first(self) -> Alert:
        """The alert that opened it."""
        return self.alerts[0]

    @property
    def also(self) -> tuple[Alert, ...]:
        """What followed from the same cause."""
        return tuple(self.alerts[1:])

    @property
    def severity(self) -> Severity:
        """That of its most severe alert."""
        return worst(alert.severity for alert in self.alerts)

    @property
    def just_became_worse(self) -> bool:
        """The last alert opened the episode, or is more severe than all before it."""
        *before, last = self.alerts
        return not before or last.severity.rank < worst(a.severity for a in before).rank


def worst(severities: Iterable[Severity]) -> Severity:
    """The most severe of them."""
    return min(severities, key=lambda severity: severity.rank)


def is_silent(alert: Alert, warmup_steps: int) -> bool:
    """What is normal is not known in warm-up: learned signals raise no alert in it."""
    return alert.learned and alert.step <= warmup_steps


class Episodes:
    """Sorts alerts into episodes; each signal speaks once in an episode.

    An alert belongs to the open episode when it comes within `window` steps of the last alert that
    was told. A signal that goes on and on does not keep the episode open for other causes, with one
    exception: a learned signal follows while learned signals are still out of range, because some
    need a hundred steps to see what others see at once. It must not be more severe, then.
    """

    def __init__(self, window: int) -> None:
        self.all: list[Episode] = []
        self.count = 0
        """Episodes so far; `all` holds those that are kept."""
        self._window = window
        self._told = self._learned = self._last = _LONG_AGO
        """Steps of the last alert that was told, of the last learned one, and of the last of any."""
        self._last_of: dict[str, int] = {}

    def take(self, alert: Alert) -> Episode | None:
        """The episode that the alert opens or joins; None when its signal has been told already."""
        step = alert.step
        goes_on = step - self._last_of.get(alert.signal, _LONG_AGO) <= self._window
        joins = self._joins(alert)
        self._last_of[alert.signal] = self._last = step
        if alert.learned:
            self._learned = step
        if goes_on or (joins and self._has_told(alert.signal)):
            return None
        self._told = step
        if not joins:
            self.count += 1
            self.all.append(Episode(self.count))
        episode = self.all[-1]
        episode.alerts.append(replace(alert, episode=episode.number, opens=not joins))
        return episode

    def _joins(self, alert: Alert) -> bool:
        if not self.all:
            return False
        if alert.step - self._told <= self._window:
            return True
        still = alert.learned and alert.step - self._learned <= self._window
        return still and alert.severity.rank >= self.all[-1].severity.rank

    def _has_told(self, signal: str) -> bool:
        return any(alert.signal == signal for alert in self.all[-1].alerts)

    def keep(self, most: int) -> None:
        """Forget the oldest episodes beyond so many."""
        del self.all[:-most]

    def open_at(self, step: int) -> bool:
        """Something was out of range within the last steps."""
        return step - self._last <= self._window
