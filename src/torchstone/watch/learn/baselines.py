"""Learns the normal range of many series at once, on a rolling window of their log values.

What is out of range is said by four channels (`channels`): spikes, shifts, changes and ramps.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torchstone.watch.learn.baselines_in_c import BaselinesInC
from torchstone.watch.learn.channels import (
    BEFORE,
    FEWEST_BLOCKS,
    FROM_SHORT,
    JUMP,
    RECENT_BLOCKS,
    SHORT,
    Changes,
    Judgement,
    Limits,
    Ramps,
    Shifts,
    Spikes,
    together,
)
from torchstone.watch.learn.journal import Change, Changed, Journal, Judged
from torchstone.watch.learn.window import BLOCK, BLOCKS, TRUSTED, WINDOW, Window
from torchstone.watch.read.fused import load_fused

_CHANGE_EVERY = 8
SETTLED_AFTER = 2 * WINDOW
"""Steps before falls and changes of what steps do mean anything: what is easy is learned in the
first ones, and the end of that turns angles and shortens steps at once."""
_CLIP = 6.0  # values enter the window no further out than this many spreads
_FADED = math.log(100.0)
_SCATTERED = 0.5  # spread of log values: a factor of 1.6 between one batch and the next is usual
_ROUNDING = 1e-9  # of the floor: what is left of it when it is taken off again


class _Due(NamedTuple):
    """Channels whose turn it is."""

    shifts: bool = False
    ramps: bool = False
    changes: bool = False


_NONE = _Due()


class Baselines:
    """The recent past of a number of series, and what is normal for each."""

    def __init__(self, limits: list[Limits], warmup: int, settled_after: int = 0) -> None:
        self._settled_after = settled_after
        """Values before falls and changes mean anything."""
        self.count = len(limits)
        self.series = -1
        """Its number in the journal; -1 where nothing is written down."""
        self._journal: Journal | None = None
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
        self.highest = np.full(self.count, -np.inf)
        """The largest median so far, of the log values."""
        self._quiet = self._judgement(np.zeros(self.count))
        self._away = np.zeros(self.count)
        self._sigmas = np.zeros(self.count)
        self._missing = np.zeros(self.count, np.bool_)
        self._far = np.zeros(self.count, np.bool_)
        found = load_fused()
        if not isinstance(found, str) and self.count:
            past.in_c = BaselinesInC(found, self._arrays(), SHORT, BEFORE, JUMP, FROM_SHORT)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """By their names in C."""
        past = self.past
        return {
            "input": np.zeros(self.count), "floors": past.floor, "least": past.least,
            "up": self._spikes.up, "down": self._spikes.down, "shift_up": self._shifts.up,
            "shift_down": self._shifts.down, "rise": self._shifts.rise, "fall": self._shifts.fall,
            "ramp": self._ramps.least, "still": self._shifts.still, "median": past.median,
            "spread": past.spread, "clipped_ring": past.values, "raw_ring": past.raw,
            "block_ring": past.blocks, "away": self._away, "sigmas": self._sigmas,
            "missing": self._missing, "far": self._far,
        }  # fmt: skip

    def write_to(self, journal: Journal, series: int) -> None:
        """From now on everything that it is given is written down."""
        self._journal, self.series = journal, series

    def _note(self, change: Change, *numbers: int) -> None:
        if self._journal is not None:
            self._journal.enter(Changed(self.series, change, numbers))

    def apply(self, changed: Changed) -> None:
        """Make a change that was written down."""
        if changed.change == "forget":
            self.forget()
        elif changed.change == "restart":
            self.restart()
        elif changed.change == "warmup":
            self.end_warmup(changed.numbers[0])
        else:
            self.learn_again(list(changed.numbers))

    # -- what is normal

    @property
    def seen(self) -> int:
        """Values of every series so far."""
        return self.past.seen

    @property
    def warmup(self) -> int:
        """Values before anything is judged."""
        return self.past.warmup

    def end_warmup(self, steps: int | None = None) -> None:
        """Values are judged from so many on: from now on, if nothing else is said."""
        steps = self.seen if steps is None else steps
        self._note("warmup", steps)
        self.past.end_warmup(steps)

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

    def has_faded(self, column: int, value: float) -> bool:
        """The value is next to nothing against what was usual earlier in the run."""
        highest = float(self.highest[column])
        return math.log(max(value, 0.0) + float(self.past.floor[column])) < highest - _FADED

    def burst(self, column: int) -> float:
        """How far the largest of the last dozen values is above the median, as a logarithm; 0 where
        values do not scatter so much that such bursts are ordinary."""
        past = self.past
        if past.spread[column] < _SCATTERED:
            return 0.0
        recent = past.raw[(past.seen - 1 - np.arange(SHORT)) % WINDOW, column]
        return max(float(recent.max() - past.median[column]), 0.0)

    def together(self, columns: slice) -> tuple[float, float] | None:
        """How far these series have jumped at once; None while that cannot be told."""
        if self.seen < self.warmup or self._fresh < SHORT + BEFORE:
            return None
        return together(self.past, columns)

    def forget(self) -> None:
        """The past is no guide any more: learn again, gross departures excepted."""
        self._note("forget")
        self._forget()

    def _forget(self) -> None:
        self._fresh = 0
        self.past.forget_blocks()

    def restart(self) -> None:
        """The past says nothing any more: every series begins again with its next value."""
        self._note("restart")
        self._forget()
        self.past.forget()
        self.highest[:] = -np.inf

    def learn_again(self, columns: list[int]) -> None:
        """These series begin again with their next value."""
        self._note("columns", *columns)
        self.past.forget(columns)

    # -- one more value of every series

    def judge(self, values: NDArray[np.float64], stretch: float, step: int) -> Judgement:
        """Judge the values of a step, and write them down where the run is recorded."""
        if self._journal is not None:
            self._journal.enter(Judged(self.series, step, stretch, values))
        return self.push(values, stretch)

    def push(self, values: NDArray[np.float64], stretch: float = 0.0) -> Judgement:
        """Judge one value of every series (NaN: none), then let it into the window."""
        past = self.past
        past.meet(values)
        fresh = self._fresh < min(past.warmup, TRUSTED)
        extra = stretch + (math.log(8.0) if fresh else 0.0)
        due = self._due()
        found = self._place(values, extra, stretch, due)
        judgement = self._quiet
        if past.seen >= past.warmup and (found or due.changes):
            judgement = self._judgement(self._sigmas)
            if found:
                self._look(judgement, due, stretch, extra)
            if due.changes:
                self._changes.judge(past, judgement, stretch)
            if judgement.channel.any():
                self._settle(judgement)
        past.enter()
        if past.seen >= past.warmup and past.seen % _CHANGE_EVERY == 0:
            np.maximum(self.highest, past.median, out=self.highest)
        self._fresh += 1
        return judgement

    def _due(self) -> _Due:
        """Whose turn it is of the channels that look at more than one value."""
        past, fresh, seen = self.past, self._fresh, self.past.seen
        if seen < past.warmup or fresh < SHORT + BEFORE:
            return _NONE
        return _Due(
            seen % past.pace == 0,
            seen % (BLOCK * past.pace // 4) == 0 and past.filled >= FEWEST_BLOCKS,
            seen % _CHANGE_EVERY == 0 and fresh >= WINDOW and seen >= self._settled_after
            and self._changes.columns.size > 0,
        )  # fmt: skip

    @property
    def _settled(self) -> bool:
        """A quick fall is not what is hoped for any more."""
        return self._fresh >= self.past.warmup and self.past.seen >= self._settled_after

    def _judgement(self, sigmas: NDArray[np.float64]) -> Judgement:
        past, count = self.past, self.count
        return Judgement(
            np.zeros(count, np.int8), sigmas, past.median, past.spread, np.full(count, np.nan)
        )

    def _place(self, values: NDArray[np.float64], extra: float, stretch: float, due: _Due) -> int:
        """Where each value lies, in C where it could be built; it is in the window after this.

        Gives the number of series that deserve a look: far in effect, or perhaps a shift or a ramp.
        """
        past, row = self.past, self.past.seen % WINDOW
        clip = _CLIP if past.seen >= TRUSTED else math.inf
        if past.in_c is not None:
            blocks = None
            if due.ramps:
                newest = (past.seen // BLOCK - 1) % BLOCKS
                blocks = (newest, RECENT_BLOCKS, past.filled - RECENT_BLOCKS)
            shifts = due.shifts + (due.shifts and self._settled)
            return past.in_c.push(values, row, extra, clip, stretch, shifts, blocks)
        logs = np.log(np.maximum(values, 0.0) + past.floor)
        missing = ~np.isfinite(logs)
        logs = np.where(missing, past.median, logs)
        away = logs - past.median
        bound = clip * past.spread
        clipped = past.median + np.minimum(np.maximum(away, -bound), bound)
        past.values[row] = np.where(missing, past.values[row], clipped)
        past.raw[row] = np.where(missing, past.raw[row], logs)
        far = (away > self._spikes.up + extra) | (away < -(self._spikes.down + extra))
        self._missing[:], self._far[:] = missing, far & ~missing
        self._away[:], self._sigmas[:] = away, away / past.spread
        return int(self._far.sum()) + due.shifts + due.ramps

    def _look(self, judgement: Judgement, due: _Due, stretch: float, extra: float) -> None:
        """At what deserves it."""
        past = self.past
        local = self._fresh >= TRUSTED
        self._spikes.judge(past, judgement, self._far, self._away, extra, local)
        if due.shifts:
            self._shifts.judge(past, judgement, stretch, self._settled)
        if due.ramps:
            self._ramps.judge(past, judgement, stretch)

    def _settle(self, judgement: Judgement) -> None:
        """What has no value now, or has not had one for long, leaves no range."""
        past = self.past
        young = (past.seen - past.born < past.warmup) & (past.born > 0)
        judgement.settle(self._missing | young, self.centre, self.width)
