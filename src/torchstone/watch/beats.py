"""Steps of one optimizer that are judged together: arrays run over the steps, then the layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from torchstone.watch.beat import Beat, once

_FEWEST = 64


class Beats:
    """What the learned signals are computed from, for all steps at once."""

    def __init__(self, each: Sequence[Beat]) -> None:
        self.each = each
        self.actor = each[0].actor
        self.memory = each[0].memory

    def __len__(self) -> int:
        return len(self.each)

    def nothing(self) -> NDArray[np.float64]:
        """NaN for every step and layer."""
        return np.full((len(self.each), len(self.actor.layers)), np.nan)

    @once
    def directed(self) -> NDArray[np.float64]:
        """1 where directions mean something; in a few dimensions they agree by chance, so NaN."""
        enough = self.actor.sampled.sum() >= _FEWEST
        return np.full(len(self.each), 1.0 if enough else np.nan)

    @once
    def dense(self) -> NDArray[np.bool_]:
        """Layers without a parameter whose gradient is mostly zero, for every step."""
        found = np.ones((len(self.each), len(self.actor.layers)), np.bool_)
        for row, beat in zip(found, self.each, strict=True):
            if beat.sparse is not None:
                row[:] = self.actor.by_layer(beat.sparse.astype(float)) == 0
        return found

    def earlier(self, name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """These values as they were one step before; NaN where that step was not read."""
        numbers = np.array([beat.number for beat in self.each])
        last, first = cast(Any, self.memory.get(name, (-1, np.nan)))
        self.memory[name] = (numbers[-1], values[-1])
        before = np.empty_like(values)
        before[0], before[1:] = first, values[:-1]
        before[np.diff(numbers, prepend=last) != 1] = np.nan  # steps in between were not read
        return before

    @once
    def norms(self) -> NDArray[np.float64]:
        """Of all gradients, unscaled; NaN when one is not finite."""
        return np.array([beat.norm for beat in self.each])

    @once
    def rates(self) -> NDArray[np.float64]:
        """Learning rates; NaN where a step is taken without any."""
        return np.array([beat.rate if beat.rate > 0 else np.nan for beat in self.each])

    @once
    def _sums(self) -> NDArray[np.float64]:
        return self.actor.sum_rows([beat.reading.rows for beat in self.each])

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
        actor = self.actor
        if all(beat.reading.present.all() for beat in self.each):
            return actor.layer_sizes[None, :]
        kept = [np.where(beat.reading.present, actor.sizes, 0) for beat in self.each]
        return np.array([actor.by_layer(sizes) for sizes in kept], np.float64)

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
        shares[[not beat.reading.counted for beat in self.each]] = np.nan
        return np.asarray(shares)

    @once
    def moved(self) -> NDArray[np.float64]:
        """For every step and layer what `Beat.moved` says; the second axis is that of its rows."""
        found = self.actor.sum_steps([beat.steps for beat in self.each if beat.steps is not None])
        for beat, moved in zip(self.each, found, strict=True):
            beat.moved = moved
        return found
