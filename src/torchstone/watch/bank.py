"""A bank learns the normal range of many series at once, on a rolling window of their log values.

Four channels look for four kinds of trouble: `spike` (one value), `shift` (the median of the
last dozen), `change` (the mean of the last thirty-two against the trend of the hundred before, for
series whose single values say little) and `ramp` (the median of the last forty against the four
hundred before). Each asks for two things at once: far from normal in units of the usual spread (σ,
from the median absolute deviation), and far in effect (a factor that a person would care about).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from torchstone.watch.fused import load_fused

WINDOW = 128
SHORT = 12
BEFORE = 24
_LOCAL = 24
LATELY = 32
_TREND = WINDOW - LATELY
_TRIMMED = 3  # of the last values on either side
_CHANGE_EVERY = 8
_TOGETHER = 8
BLOCK = 10
RECENT_BLOCKS = 4
BLOCKS = 44
_MAD = 1.4826  # of a normal distribution, to its standard deviation
_TURNS = 4  # a quarter of a wide bank has its medians refreshed at a time
_NARROW = 32
_JUMP = 0.6  # of a new level must have come within the last steps; the rest may be trend
_CLIP = 6.0  # values enter the window no further out than this many spreads
_RAMP_SIGMAS = 2.0
_ROUNDING = 1e-9  # of the floor: what is left of it when it is taken off again
_TRUSTED = 24  # values before a median means anything
_GROWN = WINDOW  # values before the window of a late series is all its own
_STEPS_BACK = np.arange(WINDOW)


def _line() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Matrices that give a straight line through the trend: its values, and where it leads."""
    basis = np.stack([np.ones(_TREND), np.linspace(-1.0, 1.0, _TREND)], 1)
    fit = np.linalg.pinv(basis)
    ahead = np.array([1.0, 1.0 + LATELY / _TREND])
    return np.asarray(basis @ fit), np.asarray(ahead @ fit)


_ALONG, _AHEAD = _line()


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


NEVER = math.inf


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a bank says about one value of every series."""

    channel: NDArray[np.int8]
    sigmas: NDArray[np.float64]
    """Signed distance from the median in spreads, of the channel that spoke."""
    centre: NDArray[np.float64]
    """What was normal when the value came, where one left its range."""
    width: NDArray[np.float64]
    level: NDArray[np.float64] | None = None
    """Log of the new level, where a shift or a ramp spoke; NaN elsewhere."""
    quiet: bool = True
    """Nothing left its range."""


class Bank:
    """The recent past of a number of series, and what is normal for each."""

    def __init__(self, limits: list[Limits], warmup: int) -> None:
        self.count = len(limits)
        self.warmup = warmup
        self.seen = 0
        self._fresh = 0
        """Values since the last event that made the past a poor guide."""
        self._floor = np.array([item.floor for item in limits])
        self._least = np.array([item.spread for item in limits])
        self._sigmas = np.array([item.sigmas for item in limits])
        self._shift_sigmas = np.array([item.shift_sigmas for item in limits])
        self._fall_sigmas = np.array([item.fall_sigmas for item in limits])
        self._still = np.array([not item.trends for item in limits], np.bool_)
        self._effects = {
            channel: tuple(np.ascontiguousarray(np.log(np.array(pairs)).T))
            for channel, pairs in (
                (Channel.SPIKE, [item.spike for item in limits]),
                (Channel.SHIFT, [item.shift for item in limits]),
                (Channel.RAMP, [item.ramp for item in limits]),
            )
        }
        self._slow = np.array([i for i, item in enumerate(limits) if item.change], np.int64)
        changes = [(*item.change, *item.change_sigmas) for item in limits if item.change]
        self._change_limits = np.array(changes).reshape(-1, 4).T
        self._values = np.zeros((WINDOW, self.count))
        self._raw_values = np.zeros((WINDOW, self.count))
        self._blocks = np.full((BLOCKS, self.count), np.nan)
        self._known = np.zeros(self.count, np.bool_)
        """Series that have had a value."""
        self._all_known = False
        self._born = np.zeros(self.count, np.int64)
        self._growing = 0
        """While `seen` is below this, some window is older than its series."""
        self.median = np.zeros(self.count)
        self.spread = np.ones(self.count)
        self._quiet = Judgement(
            np.zeros(self.count, np.int8), np.zeros(self.count), self.median, self.spread
        )
        self._input = np.zeros(self.count)
        self._places = np.zeros((3, self.count))
        self._flags = np.zeros((2, self.count), np.bool_)
        found = load_fused()
        self._pusher = None
        if not isinstance(found, str) and self.count:
            up, down = self._effects[Channel.SPIKE]
            inputs = [self._input, self._floor, self.median, self.spread, up, down]
            self._pusher = found.pusher(
                inputs, self._places, self._flags, self._values, self._raw_values
            )
        self._turn = 0
        self._pace = 4 if self.count <= _NARROW else 8  # medians of many series are dear

    # -- what is normal

    @property
    def centre(self) -> NDArray[np.float64]:
        """The usual value of every series."""
        values = np.exp(self.median) - self._floor
        return np.where(np.abs(values) < _ROUNDING * self._floor, 0.0, values)

    @property
    def width(self) -> NDArray[np.float64]:
        """One spread, in the unit of the series."""
        return np.asarray(np.exp(self.median) * np.expm1(np.minimum(self.spread, 50.0)))

    @property
    def last(self) -> NDArray[np.float64]:
        """Log values of the last push."""
        return np.asarray(self._raw_values[(self.seen - 1) % WINDOW])

    def value_of(self, judgement: Judgement, column: int, value: float) -> float:
        """What a person is shown: the value, or the level that a shift or a ramp has reached."""
        level = math.nan if judgement.level is None else float(judgement.level[column])
        if math.isnan(level):
            return value
        floor = float(self._floor[column])
        shown = math.exp(level) - floor
        return 0.0 if abs(shown) < _ROUNDING * floor else shown

    def forget(self) -> None:
        """The past is no guide any more: learn again, gross departures excepted."""
        self._fresh = 0
        self._blocks[:] = np.nan

    def restart(self) -> None:
        """The past says nothing any more: every series begins again with its next value."""
        self.forget()
        self._known[:] = False
        self._all_known = False

    # -- one more value of every series

    def push(self, values: NDArray[np.float64], stretch: float = 0.0) -> Judgement:
        """Judge one value of every series (NaN: none), then let it into the window."""
        if not self._all_known:
            self._meet(values)
        fresh = self._fresh < min(self.warmup, _TRUSTED)
        extra = stretch + (math.log(8.0) if fresh else 0.0)
        clip = _CLIP if self.seen >= _TRUSTED else math.inf
        far, missing, away, sigmas, found = self._place(values, extra, clip)
        if self.seen < self.warmup or not (found or self._is_due()):
            self._enter()
            return self._quiet
        judgement = Judgement(
            np.zeros(self.count, np.int8), sigmas, self.median, self.spread,
            np.full(self.count, np.nan),
        )  # fmt: skip
        self._judge(judgement, far if found else None, away, stretch, extra)
        if judgement.channel.any():
            young = self.seen - self._born < self.warmup
            judgement.channel[missing | (young & (self._born > 0))] = 0
            judgement = replace(
                judgement, centre=self.centre, width=self.width, quiet=not judgement.channel.any()
            )
        self._enter()
        return judgement

    def _is_due(self) -> bool:
        """One of the channels that look at more than one value has its turn."""
        seen = self.seen
        return seen % self._pace == 0 or seen % BLOCK == 0 or seen % _CHANGE_EVERY == 0

    def _meet(self, values: NDArray[np.float64]) -> None:
        """A series begins with its first value: a layer may be thawed in mid-run."""
        logs = np.log(np.maximum(values, 0.0) + self._floor)
        new = np.isfinite(logs) & ~self._known
        if new.any():
            self._known |= new
            self._all_known = bool(self._known.all())
            self._born[new] = self.seen
            self._growing = self.seen + WINDOW
            self.spread[new] = 1.0
            self.median[new] = logs[new]
            self._values[:, new] = self._raw_values[:, new] = logs[new]
            self._blocks[:, new] = np.where(np.isfinite(self._blocks[:, new]), logs[new], np.nan)

    def _regrow(self) -> None:
        """Where a window is older than its series, it holds the median of what there is."""
        for born in np.unique(self._born[self.seen - self._born < _GROWN]):
            age = int(self.seen - born)
            if born == 0 or not age:
                continue
            columns = np.flatnonzero(self._born == born)
            own = (self.seen - 1 - _STEPS_BACK[:age]) % WINDOW
            older = np.setdiff1d(np.arange(WINDOW), own)
            middle = _middle(self._raw_values[np.ix_(own, columns)])
            self._values[np.ix_(older, columns)] = middle
            self._raw_values[np.ix_(older, columns)] = middle

    def _place(
        self, values: NDArray[np.float64], extra: float, clip: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64], int]:
        """Where each value lies, in C where it could be built; it is in the window after this."""
        row = self.seen % WINDOW
        up, down = self._effects[Channel.SPIKE]
        if self._pusher is not None:
            np.copyto(self._input, values)
            found = self._pusher(row, extra, clip)
            return self._flags[1], self._flags[0], self._places[1], self._places[2], found
        logs = np.log(np.maximum(values, 0.0) + self._floor)
        missing = ~np.isfinite(logs)
        logs = np.where(missing, self.median, logs)
        away = logs - self.median
        bound = clip * self.spread
        clipped = self.median + np.minimum(np.maximum(away, -bound), bound)
        self._values[row] = np.where(missing, self._values[row], clipped)
        self._raw_values[row] = np.where(missing, self._raw_values[row], logs)
        far = ~missing & ((away > up + extra) | (away < -(down + extra)))
        return far, missing, away, away / self.spread, int(far.sum())

    def _judge(
        self, judgement: Judgement, far: NDArray[np.bool_] | None, away: NDArray[np.float64],
        stretch: float, extra: float,
    ) -> None:  # fmt: skip
        if far is not None:
            self._mark(judgement, Channel.SPIKE, away, judgement.sigmas, self._sigmas, extra)
            self._judge_locally(judgement, far, away, extra)
        if self._fresh < SHORT + BEFORE:
            return
        if self.seen % self._pace == 0:
            self._judge_shift(judgement, stretch)
        if self.seen % BLOCK == 0:
            self._judge_ramp(judgement, stretch)
        if len(self._slow) and self.seen % _CHANGE_EVERY == 0 and self._fresh >= WINDOW:
            self._judge_change(judgement, stretch)

    def _judge_locally(
        self, judgement: Judgement, far: NDArray[np.bool_], away: NDArray[np.float64],
        stretch: float,
    ) -> None:  # fmt: skip
        """A trend widens the window's spread; a spike still stands out from the steps before it."""
        up, down = self._effects[Channel.SPIKE]
        far = far & (judgement.channel == 0)
        if not far.any() or self._fresh < _LOCAL:
            return
        columns = np.flatnonzero(far)
        rows = (self.seen - 1 - _STEPS_BACK[:_LOCAL]) % WINDOW
        recent = self._raw_values[np.ix_(rows, columns)]
        centre = _middle(recent)
        jitter = _MAD * _middle(np.abs(np.diff(recent, axis=0))) / math.sqrt(2)
        moved = (self.median + away)[columns] - centre
        sigmas = moved / (jitter + self._least[columns])
        limit = 1.5 * self._sigmas[columns]  # from few values, so further out
        high = (sigmas > limit) & (moved > up[columns] + stretch)
        low = (sigmas < -limit) & (-moved > down[columns] + stretch)
        new = columns[high | low]
        judgement.channel[new] = Channel.SPIKE
        judgement.sigmas[new] = sigmas[high | low]

    def _judge_shift(self, judgement: Judgement, stretch: float) -> None:
        """A new level: far from the window, and reached at a jump, not along a trend."""
        rows = (self.seen - _STEPS_BACK[: SHORT + BEFORE]) % WINDOW
        recent = _middle(self._raw_values[rows[:SHORT]])
        moved = recent - self.median
        jump = recent - _middle(self._raw_values[rows[SHORT:]])
        same = np.sign(jump) == np.sign(moved)
        # against a trend the steps just before are the better guide
        far = np.minimum(np.maximum(np.abs(moved), np.abs(jump)), np.abs(jump) / _JUMP)
        moved = np.where(self._still, moved, np.where(same, np.sign(moved) * far, 0.0))
        sigmas = moved / self.spread * math.sqrt(SHORT) / 1.5
        # after an event, such as layers that begin to learn, a quick fall is what is hoped for
        fall = self._fall_sigmas if self._fresh >= self.warmup else NEVER
        limit = np.where(moved > 0, self._shift_sigmas, fall)
        self._mark(judgement, Channel.SHIFT, moved, sigmas, limit, stretch, recent)

    def _judge_change(self, judgement: Judgement, stretch: float) -> None:
        """A mean that left the trend: small against the jitter, and certain all the same."""
        rows = (self.seen + 1 + _STEPS_BACK) % WINDOW
        values = self._raw_values[np.ix_(rows, self._slow)]
        before, lately = values[:_TREND], np.sort(values[_TREND:], axis=0)
        level = lately[_TRIMMED:-_TRIMMED].mean(axis=0)
        rest = before - _ALONG @ before
        jitter = _MAD * _middle(np.abs(rest)) + self._least[self._slow]
        # values that hang together are worth fewer than they are
        together = rest.reshape(-1, _TOGETHER, len(self._slow)).mean(axis=1)
        swing = np.sqrt((together**2).mean(axis=0) * _TOGETHER)
        by_line, by_level = level - _AHEAD @ before, level - _middle(before)
        moved = np.where(np.abs(by_line) < np.abs(by_level), by_line, by_level)
        # where learning moves it, it must have left its path by more than it went along it
        path = np.abs((_ALONG[-1] - _ALONG[0]) @ before)
        moved = np.where((by_line * by_level > 0) & (np.abs(moved) > path), moved, 0.0)
        sigmas = moved / (np.maximum(jitter, swing) * math.sqrt(1 / LATELY + 1 / _TREND))
        up, down, rise, fall = self._change_limits
        high = (moved > np.log(up) + stretch) & (sigmas > rise)
        low = (-moved > np.log(down) + stretch) & (-sigmas > fall)
        new = (high | low) & (judgement.channel[self._slow] == 0)
        columns = self._slow[new]
        judgement.channel[columns] = Channel.CHANGE
        judgement.sigmas[columns] = sigmas[new]
        if judgement.level is not None:
            judgement.level[columns] = level[new]

    def together(self, columns: slice) -> tuple[float, float] | None:
        """How far the middle one of these series has jumped in spreads, and all of them in effect."""
        if self.seen < self.warmup or self._fresh < SHORT + BEFORE:
            return None
        rows = (self.seen - 1 - _STEPS_BACK[: SHORT + BEFORE]) % WINDOW
        values = self._raw_values[rows, columns]
        recent, before = _middle(values[:SHORT]), _middle(values[SHORT:])
        moved, jump = recent - self.median[columns], recent - before
        same = np.sign(moved) == np.sign(jump)
        spread = self.spread[columns]
        sigmas = np.minimum(
            np.abs(moved) * (math.sqrt(SHORT) / 1.5),
            np.abs(jump) * (math.sqrt(SHORT * BEFORE / (SHORT + BEFORE)) / 1.25),
        ) / spread  # fmt: skip
        effect = np.where(same, np.minimum(np.abs(moved), np.abs(jump)), 0.0)
        return float(np.median(np.where(same, sigmas, 0.0))), float(np.sqrt((effect**2).mean()))

    def _judge_ramp(self, judgement: Judgement, stretch: float) -> None:
        filled = int(np.isfinite(self._blocks[:, 0]).sum()) if self.count else 0
        if filled < RECENT_BLOCKS + 16:
            return
        order = (self.seen // BLOCK - 1 - _STEPS_BACK[:filled]) % BLOCKS
        recent = _middle(self._blocks[order[:RECENT_BLOCKS]])
        moved = recent - _middle(self._blocks[order[RECENT_BLOCKS:]])
        sigmas = moved / self.spread
        self._mark(
            judgement,
            Channel.RAMP,
            moved,
            sigmas,
            np.full(self.count, _RAMP_SIGMAS),
            stretch,
            recent,
        )

    def _mark(
        self, judgement: Judgement, channel: Channel, moved: NDArray[np.float64],
        sigmas: NDArray[np.float64], limit: NDArray[np.float64], stretch: float,
        level: NDArray[np.float64] | None = None,
    ) -> None:  # fmt: skip
        up, down = self._effects[channel]
        high = (sigmas > limit) & (moved > up + stretch)
        low = (sigmas < -limit) & (-moved > down + stretch)
        new = (high | low) & (judgement.channel == 0)
        judgement.channel[new] = channel
        judgement.sigmas[new] = sigmas[new]
        if level is not None and judgement.level is not None:
            judgement.level[new] = level[new]

    def _enter(self) -> None:
        self.seen += 1
        self._fresh += 1
        if self.seen % 8 == 0 and self.seen < self._growing:
            self._regrow()
        if self.seen % BLOCK == 0:
            rows = (self.seen - 1 - _STEPS_BACK[:BLOCK]) % WINDOW
            self._blocks[(self.seen // BLOCK - 1) % BLOCKS] = _middle(self._raw_values[rows])
        self._refresh()

    def _refresh(self) -> None:
        rows = self._values[: min(self.seen, WINDOW)]
        columns = slice(None)
        if self.seen != self.warmup and self.seen >= _TRUSTED:
            if self.seen % self._pace:
                return
            if self.count > _NARROW:
                size = -(-self.count // _TURNS)
                columns = slice(self._turn * size, (self._turn + 1) * size)
                self._turn = (self._turn + 1) % _TURNS
        part = rows[:, columns]
        if not part.size:
            return
        middle = _middle(part)
        self.median[columns] = middle
        self.spread[columns] = _MAD * _middle(np.abs(part - middle)) + self._least[columns]


def _middle(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The (upper) median of every column; np.median spends its time on cases we do not have."""
    middle = len(rows) // 2
    return np.asarray(np.partition(rows, middle, axis=0)[middle])
