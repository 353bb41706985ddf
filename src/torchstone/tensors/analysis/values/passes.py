"""Counting passes over a tensor's bytes: in C where a compiler is found, else in numpy."""

from __future__ import annotations

import ctypes
import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.runtime.c_library import load_c_library

SHIFT = 12
"""Bits of an fp32 number that a bin does not look at: 11 mantissa bits are left."""
BINS = 1 << (31 - SHIFT)
_MOST = 1 << 31  # counts of one call are 32 bits wide
_INFINITE = 0x7F800000


@dataclass(frozen=True, slots=True)
class Facts:
    """What one pass over fp32 values tells beside the counts."""

    largest: float
    """The largest finite magnitude."""
    bits: int
    """All bits that occur in any value."""
    zeros: int
    nans: int
    infinities: int


class CountFp32:
    """Counts fp32 values, chunk by chunk."""

    def __init__(self) -> None:
        self.counts = np.zeros(BINS, np.int64)
        self._chunk = np.zeros((2, BINS), np.uint32)
        self._pending = 0
        self._facts = np.zeros(5, np.uint64)

    def add(self, values: NDArray[np.float32]) -> None:
        bits = values.reshape(-1).view(np.uint32)
        if self._pending + bits.size >= _MOST:
            self._flush()
        self._pending += bits.size
        library = _library()
        if library is None:
            self._add_in_numpy(bits)
            return
        library.torchstone_count_fp32(_at(bits), bits.size, _at(self._chunk), _at(self._facts))

    def _add_in_numpy(self, bits: NDArray[np.uint32]) -> None:
        size = bits & np.uint32(0x7FFFFFFF)
        self.counts += np.bincount(size >> SHIFT, minlength=BINS)
        finite = size[size < _INFINITE]
        facts = self._facts
        facts[0] = max(int(facts[0]), int(finite.max(initial=0)))
        facts[1] |= np.uint64(np.bitwise_or.reduce(bits, initial=0))
        facts[2] += np.uint64(np.count_nonzero(size == 0))
        facts[3] += np.uint64(np.count_nonzero(size > _INFINITE))
        facts[4] += np.uint64(np.count_nonzero(size == _INFINITE))

    def _flush(self) -> None:
        self.counts += self._chunk.sum(axis=0, dtype=np.int64)
        self._chunk[:] = 0
        self._pending = 0

    def result(self) -> tuple[NDArray[np.int64], Facts]:
        self._flush()
        largest = np.array([self._facts[0]], np.uint32).view(np.float32)[0]
        rest = (int(value) for value in self._facts[1:])
        return self.counts, Facts(float(largest), *rest)


class Count16Bit:
    """Counts every pattern of a 16-bit type, chunk by chunk."""

    def __init__(self) -> None:
        self.counts = np.zeros(1 << 16, np.int64)
        self._chunk = np.zeros((4, 1 << 16), np.uint32)

    def add(self, patterns: NDArray[np.uint16]) -> None:
        flat = patterns.reshape(-1)
        library = _library()
        if library is None:
            self.counts += np.bincount(flat, minlength=1 << 16)
            return
        for start in range(0, flat.size, _MOST):
            piece = flat[start : start + _MOST]
            library.torchstone_count_16bit(_at(piece), piece.size, _at(self._chunk))
            self.counts += self._chunk.sum(axis=0, dtype=np.int64)
            self._chunk[:] = 0


def count_up_to(values: NDArray[np.float32], limits: NDArray[np.float32]) -> NDArray[np.int64]:
    """How many values have a magnitude up to each limit; NaN counts nowhere."""
    counts = np.zeros(len(limits), np.int64)
    flat = values.reshape(-1)
    library = _library()
    if library is None:
        size = np.abs(flat)
        return np.array([np.count_nonzero(size <= limit) for limit in limits], np.int64)
    library.torchstone_count_up_to(
        _at(flat), flat.size, len(limits), _at(limits.view(np.int32)), _at(counts)
    )
    return counts


def axis_extremes(
    values: NDArray[np.float32], axis: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
    """Minimum, maximum and sum of every index of an axis of finite values; None without a compiler."""
    library = _library()
    if library is None:
        return None
    shape = values.shape
    size = shape[axis]
    low, high = np.full(size, np.inf, np.float32), np.full(size, -np.inf, np.float32)
    sums = np.zeros(size)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    library.torchstone_axis_extremes(
        _at(values), outer, size, inner, _at(low), _at(high), _at(sums)
    )
    return low.astype(np.float64), high.astype(np.float64), sums


def _at(array: NDArray[Any]) -> int:
    return int(array.ctypes.data)


@functools.cache
def _loaded() -> ctypes.CDLL | str:
    library = load_c_library(Path(__file__).with_name("passes.c"))
    if isinstance(library, str):
        return library
    pointer, count = ctypes.c_void_p, ctypes.c_int64
    library.torchstone_count_fp32.argtypes = [pointer, count, pointer, pointer]
    library.torchstone_count_16bit.argtypes = [pointer, count, pointer]
    library.torchstone_count_up_to.argtypes = [pointer, count, count, pointer, pointer]
    library.torchstone_axis_extremes.argtypes = [pointer, *[count] * 3, *[pointer] * 3]
    for name in ("count_fp32", "count_16bit", "count_up_to", "axis_extremes"):
        getattr(library, f"torchstone_{name}").restype = None
    return library


def _library() -> Any:
    found = _loaded()
    return None if isinstance(found, str) else found
