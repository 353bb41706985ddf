"""Steps of one optimizer that are judged together: arrays run over the steps, then the layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from torchstone.watch.measure.update import Update, once

_FEWEST = 64


class Updates:
    """What the learned signals are computed from, for all steps at once."""

    def __init__(self, each: Sequence[Update]) -> None:
        self.each = each
        self.watched = each[0].watched
        self.memory = each[0].memory

    def __len__(self) -> int:
        return len(self.each)

    def nothing(self) -> NDArray[np.float64]:
        """NaN for every step and layer."""
        return np.full((len(self.each), len(self.watched.layers)), np.nan)

    @once
    def directed(self) -> NDArray[np.float64]:
        """1 where directions mean something; in a few dimensions they agree by chance, so NaN."""
        enough = self.watched.sampled.sum() >= _FEWEST
        return np.full(len(self.each), 1.0 if enough else np.nan)

    @once
    def dense(self) -> NDArray[np.bool_]:
        """Layers without a parameter whose gradient is mostly zero, for every step."""
        found = np.ones((len(self.each), len(self.watched.layers)), np.bool_)
        for row, update in zip(found, self.each, strict=True):
            if update.sparse is not None:
                row[:] = self.watched.by_layer(update.sparse.astype(float)) == 0
        return found

    def earlier(self, name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """These values as they were one step before; NaN where that step was not read."""
        numbers = np.array([update.number for update in self.each])
        last, first = cast(Any, self.memory.get(name, (-1, np.nan)))
        self.memory[name] = (numbers[-1], values[-1])
        before = np.empty_like(values)
        before[0], before[1:] = first, values[:-1]
        before[np.diff(numbers, prepend=last) != 1] = np.nan  # steps in between were not read
        return before

    @once
    def norms(self) -> NDArray[np.float64]:
        """Of all gradients, unscaled; NaN when one is not finite."""
        return np.array([update.norm for update in self.each])

    @once
    def rates(self) -> NDArray[np.float64]:
        """Learning rates; NaN where a step is taken without any."""
        return np.array([update.rate if update.rate > 0 else np.nan for update in self.each])

    @once
    def _sums(self) -> NDArray[np.float64]:
        return self.watched.sum_rows([update.reading.rows for update in self.each])

    @once
    def squares(self) -> NDArray[np.float64]:
        """Sum of squares of every layer's gradient, in units of the loss scale."""
        return np.asarray(self._sums[:, 0])

    @once
    def zeros(self) -> NDArray[np.float64]:
        """Zero elements of every layer."""
        return np.asarray(self._sums[:, 1])

    def below(self, level: int) -> NDArray[np.float64]:
        """Elements of every layer below a level of the query, zeros among them."""
        return np.asarray(self._sums[:, 2 + level])

    @once
    def sizes(self) -> NDArray[np.float64]:
        """Elements of every layer that have a gradient."""
        watched = self.watched
        if all(update.reading.present.all() for update in self.each):
            return watched.layer_sizes[None, :]
        kept = [np.where(update.reading.present, watched.sizes, 0) for update in self.each]
        return np.array([watched.by_layer(sizes) for sizes in kept], np.float64)

    @once
    def share_of_all(self) -> NDArray[np.float64]:
        """1 / elements of every layer that have a gradient; NaN where none was counted."""
        return self._share_of(np.broadcast_to(self.sizes, self.zeros.shape))

    @once
    def share_of_nonzero(self) -> NDArray[np.float64]:
        """1 / nonzero elements of every layer; NaN where there are none, or none was counted."""
        return self._share_of(self.sizes - self.zeros)

    def _share_of(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        shares = 1.0 / np.where(counts > 0, counts, np.nan)
        shares[[not update.reading.counted for update in self.each]] = np.nan
        return np.asarray(shares)

    @once
    def moved(self) -> NDArray[np.float64]:
        """For every step and layer what `Update.moved` says; the second axis is that of its rows."""
        found = self.watched.sum_steps(
            [update.steps for update in self.each if update.steps is not None]
        )
        for update, moved in zip(self.each, found, strict=True):
            update.keep_moved(moved)
        return found
