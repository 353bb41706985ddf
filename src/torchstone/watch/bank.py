"""A bank learns the normal range of many series at once, on a rolling window of their log values.

What is out of range is said by four channels (`channels`): spikes, shifts, changes and ramps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from torchstone.watch.channels import (
    BEFORE,
    SHORT,
    Changes,
    Judgement,
    Limits,
    Ramps,
    Shifts,
    Spikes,
    together,
)
from torchstone.watch.fused import load_fused
from torchstone.watch.window import BLOCK, TRUSTED, WINDOW, Window

_CHANGE_EVERY = 8
_CLIP = 6.0  # values enter the window no further out than this many spreads
_ROUNDING = 1e-9  # of the floor: what is left of it when it is taken off again


class Bank:
    """The recent past of a number of series, and what is normal for each."""

    def __init__(self, limits: list[Limits], warmup: int) -> None:
        self.count = len(limits)
        self._fresh = 0
        """Values since the last event that made the past a poor guide."""
        self.past = past = Window(
            np.array([item.floor for item in limits]),
            np.array([item.spread for item in limits]),
            warmup,
            [column for column, item in enumerate(limits) if item.mixed],
        )
        self._spikes, self._shifts = Spikes(limits), Shifts(limits)
        self._changes, self._ramps = Changes(limits), Ramps(limits)
        self._quiet = self._judgement(np.zeros(self.count))
        self._input = np.zeros(self.count)
        self._places = np.zeros((3, self.count))
        self._flags = np.zeros((2, self.count), np.bool_)
        found = load_fused()
        self._pusher = None
        if not isinstance(found, str) and self.count:
            inputs = [
                self._input, past.floor, past.median, past.spread, self._spikes.up,
                self._spikes.down,
            ]  # fmt: skip
            self._pusher = found.pusher(inputs, self._places, self._flags, past.values, past.raw)

    # -- what is normal

    @property
    def seen(self) -> int:
        """Values of every series so far."""
        return self.past.seen

    @property
    def warmup(self) -> int:
        """Values before anything is judged."""
        return self.past.warmup

    @warmup.setter
    def warmup(self, steps: int) -> None:
        self.past.warmup = steps

    @property
    def centre(self) -> NDArray[np.float64]:
        """The usual value of every series."""
        values = np.exp(self.past.median) - self.past.floor
        return np.where(np.abs(values) < _ROUNDING * self.past.floor, 0.0, values)

    @property
    def width(self) -> NDArray[np.float64]:
        """One spread, in the unit of the series."""
        past = self.past
        return np.asarray(np.exp(past.median) * np.expm1(np.minimum(past.spread, 50.0)))

    @property
    def away(self) -> NDArray[np.float64]:
        """How far the last values are from what is normal now, in spreads."""
        past = self.past
        last = past.raw[(past.seen - 1) % WINDOW]
        return np.asarray((last - past.median) / past.spread)

    def value_of(self, judgement: Judgement, column: int, value: float) -> float:
        """What a person is shown: the value, or the new level that was reached."""
        level = float(judgement.level[column])
        if math.isnan(level):
            return value
        floor = float(self.past.floor[column])
        shown = math.exp(level) - floor
        return 0.0 if abs(shown) < _ROUNDING * floor else shown

    def together(self, columns: slice) -> tuple[float, float] | None:
        """How far these series have jumped at once; None while that cannot be told."""
        if self.seen < self.warmup or self._fresh < SHORT + BEFORE:
            return None
        return together(self.past, columns)

    def forget(self) -> None:
        """The past is no guide any more: learn again, gross departures excepted."""
        self._fresh = 0
        self.past.blocks[:] = np.nan

    def restart(self) -> None:
        """The past says nothing any more: every series begins again with its next value."""
        self.forget()
        self.past.forget()

    # -- one more value of every series

    def push(self, values: NDArray[np.float64], stretch: float = 0.0) -> Judgement:
        """Judge one value of every series (NaN: none), then let it into the window."""
        past = self.past
        past.meet(values)
        fresh = self._fresh < min(past.warmup, TRUSTED)
        extra = stretch + (math.log(8.0) if fresh else 0.0)
        found = self._place(values, extra, _CLIP if past.seen >= TRUSTED else math.inf)
        judgement = self._quiet
        if past.seen >= past.warmup and (found or self._is_due()):
            judgement = self._judgement(self._places[2])
            self._judge(judgement, bool(found), stretch, extra)
        past.enter()
        self._fresh += 1
        return judgement

    def _judgement(self, sigmas: NDArray[np.float64]) -> Judgement:
        past, count = self.past, self.count
        return Judgement(
            np.zeros(count, np.int8), sigmas, past.median, past.spread, np.full(count, np.nan)
        )

    def _is_due(self) -> bool:
        """One of the channels that look at more than one value has its turn."""
        seen = self.past.seen
        return seen % self.past.pace == 0 or seen % BLOCK == 0 or seen % _CHANGE_EVERY == 0

    def _place(self, values: NDArray[np.float64], extra: float, clip: float) -> int:
        """Where each value lies, in C where it could be built; it is in the window after this.

        Gives the number of values that are far in effect.
        """
        past, row = self.past, self.past.seen % WINDOW
        if self._pusher is not None:
            np.copyto(self._input, values)
            return self._pusher(row, extra, clip)
        logs = np.log(np.maximum(values, 0.0) + past.floor)
        missing = ~np.isfinite(logs)
        logs = np.where(missing, past.median, logs)
        away = logs - past.median
        bound = clip * past.spread
        clipped = past.median + np.minimum(np.maximum(away, -bound), bound)
        past.values[row] = np.where(missing, past.values[row], clipped)
        past.raw[row] = np.where(missing, past.raw[row], logs)
        far = (away > self._spikes.up + extra) | (away < -(self._spikes.down + extra))
        self._flags[:] = missing, far & ~missing
        self._places[1:] = away, away / past.spread
        return int(self._flags[1].sum())

    def _judge(self, judgement: Judgement, found: bool, stretch: float, extra: float) -> None:
        past = self.past
        missing, far = self._flags
        if found:
            local = self._fresh >= TRUSTED
            self._spikes.judge(past, judgement, far, self._places[1], extra, local)
        if self._fresh >= SHORT + BEFORE:
            if past.seen % past.pace == 0:
                self._shifts.judge(past, judgement, stretch, self._fresh >= past.warmup)
            if past.seen % (BLOCK * past.pace // 4) == 0:
                self._ramps.judge(past, judgement, stretch)
            slow = past.seen % _CHANGE_EVERY == 0 and self._fresh >= WINDOW
            if slow and len(self._changes.columns):
                self._changes.judge(past, judgement, stretch)
        if judgement.channel.any():
            young = (past.seen - past.born < past.warmup) & (past.born > 0)
            judgement.channel[missing | young] = 0
            judgement.centre, judgement.width = self.centre, self.width
            judgement.quiet = not judgement.channel.any()
