"""Memory that tensors of a candidate and its C functions share: blocks of one file, given back with the tensor."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

_PAGE = 4096
"""Blocks begin at pages, so that memory that is given back is given back to the system, too."""


@dataclass(slots=True)
class SharedHeap:
    """One file in memory, cut into blocks."""

    handle: int
    base: int = 0
    size_bytes: int = 0
    _mapped: Any = None
    _next: int = 0
    _free: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.size_bytes = os.fstat(self.handle).st_size
        self._mapped = mmap.mmap(self.handle, self.size_bytes)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._mapped))

    def empty(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """A tensor of one side in a block of its own; a MemoryError where none is left."""
        size = -(-max(count * dtype.itemsize, 1) // _PAGE) * _PAGE
        offset = self._take(size)
        block = (ctypes.c_char * size).from_buffer(self._mapped, offset)
        weakref.finalize(block, self._give_back, offset, size)
        if not count:
            return torch.frombuffer(block, dtype=dtype)[:0]
        return torch.frombuffer(block, dtype=dtype, count=count)

    def _take(self, size: int) -> int:
        if self._free.get(size):
            return self._free[size].pop()
        if self._next + size > self.size_bytes:
            raise MemoryError(f"the shared memory of {self.size_bytes} bytes is full")
        self._next += size
        return self._next - size

    def _give_back(self, offset: int, size: int) -> None:
        self._free.setdefault(size, []).append(offset)

    def offset_of(self, address: int) -> int:
        """Where an address lies in the heap; -1 where it does not."""
        inside = self.base <= address < self.base + self.size_bytes
        return address - self.base if inside else -1
