"""Four channels look for four kinds of trouble in a window of log values.

`Spikes` look at one value, `Shifts` at the median of the last dozen, `Changes` at the mean of the
last thirty-two against the trend of the hundred before (for series whose single values say little),
`Ramps` at the median of the last forty against the four hundred before. Each asks for two things at
once: far from normal in units of the usual spread (σ, from the median absolute deviation), and far
in effect (a factor that a person would care about).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from torchstone.watch.learn.medians import middle
from torchstone.watch.learn.window import BLOCK, MAD, WINDOW, Window

NEVER = math.inf
SHORT = 12
BEFORE = 24
LATELY = 32
_LOCAL = 24
_TREND = WINDOW - LATELY
_TRIMMED = 3  # of the last values on either side
_TOGETHER = 8
RECENT_BLOCKS = 4
FEWEST_BLOCKS = 20
JUMP = 0.6  # of a new level must have come within the last steps; the rest may be trend
_RAMP_SIGMAS = 2.0
FROM_SHORT = math.sqrt(SHORT) / 1.5  # spreads of one value in those of a median of so many
_FROM_BOTH = math.sqrt(SHORT * BEFORE / (SHORT + BEFORE)) / 1.25
_STEPS_BACK = np.arange(WINDOW)


class Channel(IntEnum):
    """What kind of departure was seen."""

    NONE = 0
    SPIKE = 1
    SHIFT = 2
    RAMP = 3
    CHANGE = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """How far is too far, as factors up and down, and in units of the usual spread."""

    spike: tuple[float, float] = (2.5, 5.0)
    shift: tuple[float, float] = (3.0, 5.0)
    ramp: tuple[float, float] = (4.0, 8.0)
    sigmas: float = 8.0
    shift_sigmas: float = 5.0
    fall_sigmas: float = 5.0
    """Of a shift downwards."""
    change: tuple[float, float] | None = None
    """Asked of few series: it needs the whole window."""
    change_sigmas: tuple[float, float] = (10.0, 10.0)
    """Up and down, in standard errors of the mean."""
    floor: float = 1e-30
    """Added before the logarithm: a share below it is as good as zero."""
    spread: float = 0.02
    """The least spread of the log values: a constant series must not alarm on a rounding."""
    mixed: bool = False
    """Batches may be of two kinds by turns: the spread is not less than that between the kinds."""
    trends: bool = True
    """Learning moves it: a new level must have come at a jump. What it does not move may not drift."""

    def scaled(self, factor: float) -> Limits:
        """Wider for a factor above 1: effects as powers, sigmas as products."""

        def wider(pair: tuple[float, float]) -> tuple[float, float]:
            return pair[0] ** factor, pair[1] ** factor

        return replace(
            self, spike=wider(self.spike), shift=wider(self.shift), ramp=wider(self.ramp),
            sigmas=self.sigmas * factor, shift_sigmas=self.shift_sigmas * factor,
            fall_sigmas=self.fall_sigmas * factor,
            change=None if self.change is None else wider(self.change),
            change_sigmas=(self.change_sigmas[0] * factor, self.change_sigmas[1] * factor),
        )  # fmt: skip


@dataclass(slots=True)
class Judgement:
    """What is said about one value of every series."""

    channel: NDArray[np.int8]
    sigmas: NDArray[np.float64]
    """Signed distance from the median in spreads, of the channel that spoke."""
    centre: NDArray[np.float64]
    """What was normal when the value came, where one left its range."""
    width: NDArray[np.float64]
    level: NDArray[np.float64]
    """Log of the new level, where a channel spoke of more than one value; NaN elsewhere."""
    quiet: bool = True
    """Nothing left its range."""

    def mark(
        self, channel: Channel, columns: NDArray[np.int64], sigmas: NDArray[np.float64],
        level: NDArray[np.float64] | None = None,
    ) -> None:  # fmt: skip
        """These series left their range; the first channel to say so counts."""
        new = self.channel[columns] == 0
        columns = columns[new]
        self.channel[columns] = channel
        self.sigmas[columns] = sigmas[new]
        if level is not None:
            self.level[columns] = level[new]

    def settle(
        self, unknown: NDArray[np.bool_], centre: NDArray[np.float64], width: NDArray[np.float64]
    ) -> None:
        """What was unknown left no range; what was normal is kept as it was then."""
        self.channel[unknown] = 0
        self.centre, self.width = centre, width
        self.quiet = not self.channel.any()


class Spikes:
    """One value: against the window, or against the steps just before it."""

    def __init__(self, limits: list[Limits]) -> None:
        self.up, self.down = _logs([item.spike for item in limits])
        self._sigmas = np.array([item.sigmas for item in limits])

    def judge(
        self, past: Window, judgement: Judgement, far: NDArray[np.bool_], away: NDArray[np.float64],
        stretch: float, local: bool,
    ) -> None:  # fmt: skip
        """Of the values that are far in effect, those that are far in spreads too."""
        columns = np.flatnonzero(far)
        sigmas = judgement.sigmas[columns]
        beyond = np.abs(sigmas) > self._sigmas[columns]
        judgement.mark(Channel.SPIKE, columns[beyond], sigmas[beyond])
        if local and not beyond.all():
            self._judge_locally(past, judgement, columns[~beyond], away, stretch)

    def _judge_locally(
        self, past: Window, judgement: Judgement, columns: NDArray[np.int64],
        away: NDArray[np.float64], stretch: float,
    ) -> None:  # fmt: skip
        """A trend widens the window's spread; a spike still stands out from the steps before it."""
        rows = (past.seen - 1 - _STEPS_BACK[:_LOCAL]) % WINDOW
        recent = past.raw[np.ix_(rows, columns)]
        jitter = MAD * middle(np.abs(np.diff(recent, axis=0))) / math.sqrt(2)
        moved = (past.median + away)[columns] - middle(recent)
        sigmas = moved / (jitter + past.least[columns])
        limit = 1.5 * self._sigmas[columns]  # from few values, so further out
        high = (sigmas > limit) & (moved > self.up[columns] + stretch)
        low = (sigmas < -limit) & (-moved > self.down[columns] + stretch)
        new = high | low
        judgement.mark(Channel.SPIKE, columns[new], sigmas[new])


class Shifts:
    """A new level: far from the window, and reached at a jump, not along a trend."""

    def __init__(self, limits: list[Limits]) -> None:
        self.up, self.down = _logs([item.shift for item in limits])
        self._least = np.minimum(self.up, self.down)
        self.rise = np.array([item.shift_sigmas for item in limits])
        self.fall = np.array([item.fall_sigmas for item in limits])
        self.still = np.array([not item.trends for item in limits], np.bool_)

    def judge(self, past: Window, judgement: Judgement, stretch: float, settled: bool) -> None:
        """Unless things are settled a quick fall is what is hoped for: layers begin to learn."""
        recent = past.middle_of_raw(past.seen, SHORT)
        moved = recent - past.median
        jump = recent - past.middle_of_raw(past.seen - SHORT, BEFORE)
        size, leap = np.abs(moved), np.abs(jump)
        # against a trend the steps just before are the better guide
        far = np.minimum(np.maximum(size, leap), leap / JUMP)
        far[moved * jump <= 0] = 0.0
        far = np.where(self.still, size, far)
        columns = np.flatnonzero(far > self._least + stretch)
        if not len(columns):
            return
        far, rising = far[columns], moved[columns] > 0
        effect = np.where(rising, self.up[columns], self.down[columns])
        fall = self.fall[columns] if settled else NEVER
        sigmas = far / past.spread[columns] * FROM_SHORT
        new = (far > effect + stretch) & (sigmas > np.where(rising, self.rise[columns], fall))
        columns, sigmas = columns[new], np.where(rising, sigmas, -sigmas)[new]
        judgement.mark(Channel.SHIFT, columns, sigmas, recent[columns])


def together(past: Window, columns: slice) -> tuple[float, float]:
    """How far the middle one of these series has jumped in spreads, and all of them in effect."""
    span = (columns.start, columns.stop)
    recent = past.middle_of_raw(past.seen - 1, SHORT, span)
    before = past.middle_of_raw(past.seen - 1 - SHORT, BEFORE, span)
    moved, jump = recent - past.median[columns], recent - before
    same = moved * jump > 0
    size, leap = np.abs(moved), np.abs(jump)
    sigmas = np.minimum(size * FROM_SHORT, leap * _FROM_BOTH) / past.spread[columns]
    effect = np.where(same, np.minimum(size, leap), 0.0)
    return float(middle(np.where(same, sigmas, 0.0))), math.sqrt(float(effect @ effect) / len(effect))  # fmt: skip


class Ramps:
    """A slow climb or fall, seen on the medians of blocks of steps."""

    def __init__(self, limits: list[Limits]) -> None:
        self._up, self._down = _logs([item.ramp for item in limits])
        self.least = np.minimum(self._up, self._down)

    def judge(self, past: Window, judgement: Judgement, stretch: float) -> None:
        """Wants two hundred steps that belong together."""
        newest, earlier = past.seen // BLOCK - 1, past.filled - RECENT_BLOCKS
        recent = past.middle_of_blocks(newest, RECENT_BLOCKS)
        moved = recent - past.middle_of_blocks(newest - RECENT_BLOCKS, earlier)
        columns = np.flatnonzero(np.abs(moved) > self.least + stretch)
        if not len(columns):
            return
        moved = moved[columns]
        sigmas = moved / past.spread[columns]
        effect = np.where(moved > 0, self._up[columns], self._down[columns])
        new = (np.abs(moved) > effect + stretch) & (np.abs(sigmas) > _RAMP_SIGMAS)
        judgement.mark(Channel.RAMP, columns[new], sigmas[new], recent[columns[new]])


def _line() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Matrices that give a straight line through the trend: its values, and where it leads."""
    basis = np.stack([np.ones(_TREND), np.linspace(-1.0, 1.0, _TREND)], 1)
    fit = np.linalg.pinv(basis)
    ahead = np.array([1.0, 1.0 + LATELY / _TREND])
    return np.asarray(basis @ fit), np.asarray(ahead @ fit)


_ALONG, _AHEAD = _line()


class Changes:
    """A mean that left the trend: small against the jitter, and certain all the same."""

    def __init__(self, limits: list[Limits]) -> None:
        asked = [(i, item) for i, item in enumerate(limits) if item.change]
        self.columns = np.array([i for i, _ in asked], np.int64)
        self._up, self._down = _logs([item.change for _, item in asked if item.change])
        self._least = np.minimum(self._up, self._down)
        self._rise, self._fall = np.array([i.change_sigmas for _, i in asked]).reshape(-1, 2).T

    def judge(self, past: Window, judgement: Judgement, stretch: float) -> None:
        """Wants a window that is full of one kind of values."""
        rows = (past.seen + 1 + _STEPS_BACK) % WINDOW
        values = past.raw[rows[:, None], self.columns]
        before, lately = values[:_TREND], np.sort(values[_TREND:], axis=0)
        level = lately[_TRIMMED:-_TRIMMED].mean(axis=0)
        by_level = level - middle(before)
        if not (np.abs(by_level) > self._least + stretch).any():
            return
        rest = before - _ALONG @ before
        jitter = MAD * middle(np.abs(rest)) + past.least[self.columns]
        # values that hang together are worth fewer than they are
        means = rest.reshape(-1, _TOGETHER, len(self.columns)).mean(axis=1)
        swing = np.sqrt((means**2).mean(axis=0) * _TOGETHER)
        by_line = level - _AHEAD @ before
        moved = np.where(np.abs(by_line) < np.abs(by_level), by_line, by_level)
        # where learning moves it, it must have left its path by more than it went along it
        path = np.abs((_ALONG[-1] - _ALONG[0]) @ before)
        moved = np.where((by_line * by_level > 0) & (np.abs(moved) > path), moved, 0.0)
        sigmas = moved / (np.maximum(jitter, swing) * math.sqrt(1 / LATELY + 1 / _TREND))
        high = (moved > self._up + stretch) & (sigmas > self._rise)
        low = (-moved > self._down + stretch) & (-sigmas > self._fall)
        new = high | low
        judgement.mark(Channel.CHANGE, self.columns[new], sigmas[new], level[new])


def _logs(pairs: list[tuple[float, float]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    up, down = np.ascontiguousarray(np.log(np.array(pairs).reshape(-1, 2)).T)
    return up, down
