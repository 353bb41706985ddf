"""The C pass: built once with the system's compiler, kept in the user's cache, loaded by ctypes."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchstone.runtime.c_library import load_c_library

SOURCE = Path(__file__).with_name("fused.c")
LEVELS = 8
ROW = np.dtype(
    [("sum_of_squares", "f8"), ("largest", "f8"), ("nan", "i8"), ("infinite", "i8"),
     ("zero", "i8"), ("beyond", "i8"), ("below", "i8", (LEVELS,))]
)  # fmt: skip
STEP = np.dtype(
    [("update_squares", "f8"), ("weight_squares", "f8"), ("gradient_squares", "f8"),
     ("along", "f8"), ("again", "f8"), ("straight", "f8"), ("changed", "i8"), ("pushed", "i8"),
     ("absorbed", "i8"), ("not_finite", "i8"), ("digest", "u8")]
)  # fmt: skip
_MOST_POOLED = 64
_UNUSED = 2  # references: that of its `Pinned`, and that of the question
_THREE = ctypes.c_double * 3


def address(array: NDArray[Any]) -> int:
    """Where an array begins; numpy's own way of saying it takes four times as long."""
    memory: Any = array  # its type does not say that it can be written to
    return ctypes.addressof(ctypes.c_char.from_buffer(memory)) if array.size else 0


class Pinned:
    """An array that stays where it is for as long as this holds it, and its address."""

    __slots__ = ("array", "at")

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.at = address(array)


class Pool:
    """Arrays of one shape, used again once nobody holds them.

    What is kept for a few steps would otherwise lie between the tensors that the program makes and
    frees, and make malloc search longer for each of them.
    """

    def __init__(self, shape: tuple[int, ...] | int, dtype: Any) -> None:
        self._shape, self._dtype = shape, dtype
        self._all: list[Pinned] = []
        self._next = 0

    def take(self) -> Pinned:
        """An array with any content: the one that was given longest ago, or a new one."""
        found = self._all[self._next] if self._all else None
        if found is None or sys.getrefcount(found.array) > _UNUSED:
            found = Pinned(np.empty(self._shape, self._dtype))
            if len(self._all) == _MOST_POOLED:
                return found
            self._all.insert(self._next, found)
        self._next = (self._next + 1) % len(self._all)
        return found


@dataclass(frozen=True, slots=True)
class Fused:
    """The loaded library; its functions release the interpreter while they read."""

    call: SimpleNamespace
    """The functions by their names in C."""

    def look(self, place: int, pieces: int, distance: int, width: int) -> tuple[float, int, int]:
        """Sum of squares, zeros, and values below zero in pieces that lie so far apart."""
        seen = _THREE()
        self.call.look(place, pieces, distance, width, seen)
        return seen[0], int(seen[1]), int(seen[2])

    def read(
        self, pointers: NDArray[np.uint64], sizes: Pinned, kinds: Pinned, levels: Pinned,
        limits: Pinned, rows: Pinned, histograms: NDArray[np.int64] | None,
        samples: Pinned | None,
    ) -> float:  # fmt: skip
        """One row of counts for every tensor, and a few of its values; gives the sum of squares."""
        found: float = self.call.read(
            len(pointers), address(pointers), sizes.at, kinds.at, levels.at, limits.at,
            rows.at, None if histograms is None else address(histograms),
            0 if samples is None else samples.array.shape[1],
            None if samples is None else samples.at,
        )  # fmt: skip
        return found

    def sample(self, pointers: Pinned, sizes: Pinned, kinds: Pinned, out: Pinned) -> None:
        """Evenly spread values of every tensor, one row each."""
        self.call.sample(
            len(out.array), pointers.at, sizes.at, kinds.at, out.array.shape[1], out.at
        )

    def same(
        self, pointers: Pinned, sizes: Pinned, kinds: Pinned, then: NDArray[np.float32],
        first: int, every: int,
    ) -> bool:  # fmt: skip
        """Every so many values of a sample are what they were."""
        return bool(self.call.same(
            len(then), pointers.at, sizes.at, kinds.at, then.shape[1], address(then), first, every
        ))  # fmt: skip

    def step(
        self, sizes: Pinned, before: NDArray[np.float32], after: NDArray[np.float32],
        gradients: NDArray[np.float32], last: Pinned, digests: bool, steps: Pinned,
    ) -> None:  # fmt: skip
        """What a step did to the sampled weights; `last` is brought up to date."""
        self.call.step(
            len(before), sizes.at, before.shape[1], address(before), address(after),
            address(gradients), last.at, digests, steps.at,
        )  # fmt: skip

    def sum_rows(self, bounds: Pinned, rows: Sequence[NDArray[np.void]]) -> NDArray[np.float64]:
        """Sums over the parameters of every layer, for several steps: squares, zeros, below each
        level, not finite."""
        return self._sum(self.call.sum_rows, LEVELS + 3, bounds, rows)

    def sum_steps(self, bounds: Pinned, steps: Sequence[NDArray[np.void]]) -> NDArray[np.float64]:
        """Squares, counts and products over the parameters of every layer, as in `Update.moved`."""
        return self._sum(self.call.sum_steps, 10, bounds, steps)

    @staticmethod
    def _sum(
        function: Any, kinds: int, bounds: Pinned, arrays: Sequence[NDArray[np.void]]
    ) -> NDArray[np.float64]:
        layers = len(bounds.array) - 1
        places = np.array([address(item) for item in arrays], np.uint64)
        out = np.empty((len(arrays), kinds, layers))
        function(len(arrays), layers, bounds.at, address(places), address(out))
        return out


@functools.cache
def load_fused() -> Fused | str:
    """The library, or the reason why there is none."""
    library = load_c_library(SOURCE)
    return library if isinstance(library, str) else Fused(_functions(library))


def _functions(library: ctypes.CDLL) -> SimpleNamespace:
    """The functions of the library, with the types of what they give and take."""
    pointer, count, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
    types: dict[str, tuple[Any, ...]] = {
        "read": (number, count, *[pointer] * 7, count, pointer),
        "look": (None, pointer, count, count, count, pointer),
        "sample": (None, count, pointer, pointer, pointer, count, pointer),
        "same": (count, count, *[pointer] * 3, count, pointer, count, count),
        "step": (None, count, pointer, count, *[pointer] * 4, count, pointer),
        "push": (count, pointer, count, *[number] * 3, count, count, pointer, pointer),
        "refresh": (None, pointer, count, pointer, count, count, number),
        "middle": (None, pointer, *[count] * 3, pointer, count, count, pointer, pointer),
        "sum_rows": (None, count, count, *[pointer] * 3),
        "sum_steps": (None, count, count, *[pointer] * 3),
    }
    return SimpleNamespace(**{
        name: ctypes.CFUNCTYPE(*signature)((f"torchstone_{name}", library))
        for name, signature in types.items()
    })  # fmt: skip
