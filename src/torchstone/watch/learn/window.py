"""The window of a number of series: their last log values, the median and the spread of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchstone.watch.learn.baselines_in_c import BaselinesInC
from torchstone.watch.learn.medians import Medians, middle

WINDOW = 128
BLOCK = 10
BLOCKS = 44
MAD = 1.4826  # of a normal distribution, to its standard deviation
TRUSTED = 24  # values before a median means anything
_TURNS = 4  # a quarter of a wide window has its medians refreshed at a time
_NARROW = 32
_OF_TENTHS = 2.563  # spreads of a normal distribution between its first and its last tenth
_STEPS_BACK = np.arange(WINDOW)


class Window:
    """The recent past; the row of `seen` is the one that is being filled."""

    def __init__(
        self, floor: NDArray[np.float64], least: NDArray[np.float64], warmup: int,
        mixed: list[int] | None = None,
    ) -> None:  # fmt: skip
        self.count = len(floor)
        self._mixed = mixed or []
        self.warmup = warmup
        self.seen = 0
        self.floor = floor
        """Added before the logarithm."""
        self.least = least
        """The least spread."""
        self.values = np.zeros((WINDOW, self.count))
        """Log values, none further out than so many spreads: what is normal is learned from them."""
        self.raw = np.zeros((WINDOW, self.count))
        """Log values as they came."""
        self.blocks = np.full((BLOCKS, self.count), np.nan)
        """Medians of ten steps each."""
        self.middle_of_raw = Medians(self.raw)
        self.middle_of_blocks = Medians(self.blocks)
        self.median = np.zeros(self.count)
        self.spread = np.ones(self.count)
        self.pace = 4 if self.count <= _NARROW else 8  # medians of many series are slow
        self._known = np.zeros(self.count, np.bool_)
        """Series that have had a value."""
        self._unknown = np.arange(self.count)
        self.born = np.zeros(self.count, np.int64)
        self._growing = 0
        """While `seen` is below this, some window is older than its series."""
        self._turn = 0
        self.filled = 0
        """Blocks that belong together."""
        self.in_c: BaselinesInC | None = None

    def end_warmup(self, seen: int) -> None:
        """Values before anything is judged, from now on."""
        self.warmup = seen

    def meet(self, values: NDArray[np.float64]) -> None:
        """A series begins with its first value: a layer may be thawed in mid-run."""
        if not len(self._unknown) or not np.isfinite(values[self._unknown]).any():
            return
        logs = np.log(np.maximum(values, 0.0) + self.floor)
        new = np.isfinite(logs) & ~self._known
        self._known |= new
        self._unknown = np.flatnonzero(~self._known)
        self.born[new] = self.seen
        self._growing = self.seen + WINDOW
        self.spread[new] = 1.0
        self.median[new] = logs[new]
        self.values[:, new] = self.raw[:, new] = logs[new]
        self.blocks[:, new] = np.where(np.isfinite(self.blocks[:, new]), logs[new], np.nan)

    def has_begun(self, column: int) -> bool:
        """The series has had a finite value, so that something is normal for it."""
        return bool(self._known[column])

    def forget_blocks(self) -> None:
        """What was hundreds of steps ago says nothing any more."""
        self.blocks[:] = np.nan
        self.filled = 0

    def forget(self, columns: list[int] | None = None) -> None:
        """These series, or all, begin again with their next value."""
        self._known[slice(None) if columns is None else columns] = False
        self._unknown = np.flatnonzero(~self._known)

    def enter(self) -> None:
        """The row is full: the next one, and what is normal from now on."""
        self.seen += 1
        if self.seen % 8 == 0 and self.seen < self._growing:
            self._regrow()
        if self.seen % BLOCK == 0:
            row = (self.seen // BLOCK - 1) % BLOCKS
            self.blocks[row] = self.middle_of_raw(self.seen - 1, BLOCK)
            self.filled = min(self.filled + 1, BLOCKS)
        if self.seen % self.pace == 0 or self.seen == self.warmup or self.seen < TRUSTED:
            self._refresh()

    def _regrow(self) -> None:
        """Where a window is older than its series, it holds the median of what there is."""
        for born in np.unique(self.born[self.seen - self.born < WINDOW]):
            age = int(self.seen - born)
            if born == 0 or not age:
                continue
            columns = np.flatnonzero(self.born == born)
            own = (self.seen - 1 - _STEPS_BACK[:age]) % WINDOW
            older = np.setdiff1d(np.arange(WINDOW), own)
            usual = middle(self.raw[np.ix_(own, columns)])
            self.values[np.ix_(older, columns)] = usual
            self.raw[np.ix_(older, columns)] = usual

    def _refresh(self) -> None:
        first, end = 0, self.count
        if self.seen != self.warmup and self.seen >= TRUSTED and self.count > _NARROW:
            size = -(-self.count // _TURNS)
            first, end = self._turn * size, min((self._turn + 1) * size, self.count)
            self._turn = (self._turn + 1) % _TURNS
        newest, count, columns = self.seen - 1, min(self.seen, WINDOW), slice(first, end)
        if self.in_c is not None and first < end:
            self.in_c.refresh(newest % WINDOW, count, (first, end), MAD)
        elif first < end:
            part = self.values[:count, columns]
            self.median[columns] = usual = middle(part)
            self.spread[columns] = MAD * middle(np.abs(part - usual)) + self.least[columns]
        for column in self._mixed:
            sorted_values = np.sort(self.values[: min(self.seen, WINDOW), column])
            tenth = len(sorted_values) // 10
            between = float(sorted_values[-1 - tenth] - sorted_values[tenth])
            self.spread[column] = max(self.spread[column], between / _OF_TENTHS)
