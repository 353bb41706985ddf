"""Medians of many series at once, over the last rows of a ring; in C where it could be built."""

from __future__ import annotations

import ctypes
import functools

import numpy as np
from numpy.typing import NDArray

from torchstone.watch.read.fused import Pinned, address, load_fused


class Network(ctypes.Structure):
    """Pairs of rows to compare, in turn, until the middle one is in its place."""

    _fields_ = (
        ("rows", ctypes.c_int64),
        ("comparisons", ctypes.c_int64),
        ("pairs", ctypes.c_void_p),
    )


class Medians:
    """The (upper) medians of the last rows of a ring."""

    def __init__(self, ring: NDArray[np.float64]) -> None:
        found = load_fused()
        self._function = None if isinstance(found, str) else found.call.middle
        self._ring = Pinned(ring)

    def __call__(
        self, newest: int, count: int, columns: tuple[int, int] | None = None,
        around: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:  # fmt: skip
        """Over so many rows up to the newest; with `around`, of the distances from it."""
        ring = self._ring.array
        rows, width = ring.shape
        first, end = columns or (0, width)
        if self._function is None or first == end:
            part = ring[(newest - np.arange(count)) % rows, first:end]
            return middle(part if around is None else np.abs(part - around))
        out = np.empty(end - first)
        self._function(
            self._ring.at, rows, width, newest % rows, network(count), first, end,
            None if around is None else address(around), address(out),
        )  # fmt: skip
        return out


def middle(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The (upper) median of every column; np.median spends its time on cases we do not have."""
    half = len(rows) // 2
    return np.asarray(np.partition(rows, half, axis=0)[half])


def network(count: int) -> int:
    """The address of the network for so many rows."""
    return _network(count)[1]


@functools.cache
def _network(count: int) -> tuple[Network, int, Pinned]:
    """Batcher's merge exchange sort, without what does not lead to the middle."""
    pairs = [
        (i, i + k)
        for p in (1 << i for i in range((count - 1).bit_length()))
        for k in (p >> i for i in range(p.bit_length()))
        for j in range(k % p, count - k, 2 * k)
        for i in range(j, min(j + k, count - k))
        if i // (2 * p) == (i + k) // (2 * p)
    ]
    needed, kept = {count // 2}, []
    for pair in reversed(pairs):
        if not needed.isdisjoint(pair):
            needed.update(pair)
            kept.append(pair)
    table = Pinned(np.array(kept[::-1], np.uint8).reshape(-1, 2))
    found = Network(count, len(kept), table.at)
    return found, ctypes.addressof(found), table
