"""What `Baselines` does at every step, in C: one call takes a value of every series in."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.watch.learn.medians import network
from torchstone.watch.read.fused import Fused, address

_POINTERS = (
    "input", "floors", "least", "up", "down", "shift_up", "shift_down", "ramp", "rise", "fall",
    "still", "median", "spread", "clipped_ring", "raw_ring", "block_ring", "away", "sigmas",
    "missing", "far", "recent", "before",
)  # fmt: skip
"""In the order of the struct."""


class _Bank(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("columns", "rows", "blocks")),
        *((name, ctypes.c_void_p) for name in (*_POINTERS, "lately", "earlier")),
        ("jump", ctypes.c_double),
        ("to_one", ctypes.c_double),
    )


class BaselinesInC:
    """The arrays of one `Baselines`, with every address looked up once."""

    def __init__(
        self, fused: Fused, arrays: dict[str, NDArray[Any]], short: int, before: int, jump: float,
        to_one: float,
    ) -> None:  # fmt: skip
        columns = len(arrays["median"])
        own = {name: np.empty(columns) for name in ("recent", "before")}
        self._arrays = {**arrays, **own}  # they must stay alive
        assert set(self._arrays) == set(_POINTERS)
        self._bank = _Bank(
            columns, len(arrays["raw_ring"]), len(arrays["block_ring"]),
            *(address(self._arrays[name]) for name in _POINTERS),
            network(short), network(before), jump, to_one,
        )  # fmt: skip
        self._at = ctypes.addressof(self._bank)
        self._push = fused.call.push
        self._refresh = fused.call.refresh
        self._input: NDArray[np.float64] = arrays["input"]

    def push(
        self, values: NDArray[np.float64], row: int, extra: float, clip: float, stretch: float,
        shifts: int, blocks: tuple[int, int, int] | None,
    ) -> int:  # fmt: skip
        """Take these values into a row; gives the number of series that deserve a look.

        Shifts are asked for with 1, or 2 where things are settled; ramps with the newest block and
        the numbers of late and earlier ones.
        """
        np.copyto(self._input, values)
        newest, late, earlier = blocks or (0, 0, 0)
        ramps = (network(late), network(earlier)) if blocks else (None, None)
        return int(self._push(self._at, row, extra, clip, stretch, shifts, newest, *ramps))

    def refresh(self, newest: int, count: int, columns: tuple[int, int], to_spread: float) -> None:
        """Median and spread of these columns, over so many rows up to the newest."""
        self._refresh(self._at, newest, network(count), *columns, to_spread)
