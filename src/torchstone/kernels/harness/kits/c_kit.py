"""C: `torchstone_kernel.library`, whose functions run in a process of their own; calls are counted and recorded."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.calling.launches import Launches
from torchstone.kernels.harness.calling.monitor import Pause, plain
from torchstone.kernels.harness.calling.red_zones import MARGIN_BYTES
from torchstone.kernels.harness.shared_arrays import Mapped
from torchstone.kernels.harness.shared_heap import SharedHeap
from torchstone.kernels.messages.facts import RecordedArgument, RecordedCall

_ELEMENTS = {
    "float": ("float32",), "double": ("float64",), "int": ("int32",), "int32_t": ("int32",),
    "long": ("int64",), "long long": ("int64",), "int64_t": ("int64",), "int8_t": ("int8",),
    "signed char": ("int8",), "char": ("int8", "uint8", "bool"), "uint8_t": ("uint8", "bool"),
    "unsigned char": ("uint8", "bool"), "bool": ("bool",), "_Bool": ("bool",),
    "int16_t": ("int16",), "uint16_t": ("float16", "bfloat16", "uint16"), "short": ("int16",),
    "_Float16": ("float16",), "uint32_t": ("uint32",), "uint64_t": ("uint64",),
}  # fmt: skip
_RECORD_BYTES = 8 << 20
_WHOLE, _REAL, _IN_HEAP, _IN_INPUTS = range(4)
"""Kinds of arguments in a message."""
_MARGIN = 0x7F
"""What stands around a copied argument: 3 · 10³⁸ as a float, outside of every array as a place."""
RUNNER_DIED = 86
"""The exit code of a process whose functions ended."""
Spoiled = tuple[str, str, int]
"""An argument whose margin was written into: its type, the side, and how many bytes."""


@dataclass(slots=True)
class Runner:
    """The way to the process that holds the functions: a socket, and memory that both share."""

    link: socket.socket
    heap: SharedHeap
    mapped: Mapped
    margin_bytes: int = MARGIN_BYTES
    """Around arguments that are copied; 0 where nothing is watched."""

    def call(self, function: int, kinds: list[str], values: list[Any]) -> list[Spoiled]:
        """Call a function of the candidate; what it wrote outside of arguments that were copied."""
        message = [struct.pack("<qq", function, len(values))]
        copies: list[tuple[str, torch.Tensor, torch.Tensor]] = []
        for kind, value in zip(kinds, values, strict=True):
            if kind.endswith("*"):
                where, offset = self._place(kind, _tensor(value), copies)
                message.append(struct.pack("<qq", where, offset))
            elif kind in ("float", "double") or isinstance(value, float):
                message.append(struct.pack("<qd", _REAL, float(value)))
            else:
                message.append(struct.pack("<qQ", _WHOLE, int(value) & (2**64 - 1)))
        self.link.sendall(b"".join(message))
        if len(self.link.recv(8, socket.MSG_WAITALL)) < 8:
            os._exit(RUNNER_DIED)  # how it ended is known outside
        return [found for item in copies for found in _copied_back(*item)]

    def _place(
        self, kind: str, value: torch.Tensor, copies: list[tuple[str, torch.Tensor, torch.Tensor]]
    ) -> tuple[int, int]:
        """Where the runner finds an array: as it is where it is shared, else a copy between margins."""
        start, size = _span(value)
        offset = self.heap.offset_of(start)
        if offset >= 0:
            return _IN_HEAP, offset
        if (inside := self.mapped.offset_of(start)) >= 0:
            return _IN_INPUTS, inside
        margin = self.margin_bytes
        block = self.heap.empty(size + 2 * margin, torch.uint8)
        block[:margin], block[margin + size :] = _MARGIN, _MARGIN
        flat = value.as_strided((size // value.element_size(),), (1,)).view(torch.uint8)
        block[margin : margin + size] = flat
        copies.append((kind, block, flat))
        return _IN_HEAP, self.heap.offset_of(block.data_ptr()) + margin


def _tensor(value: Any) -> torch.Tensor:
    tensor = torch.from_numpy(plain(value)) if isinstance(value, np.ndarray) else value
    return tensor.detach()


def _copied_back(kind: str, block: torch.Tensor, target: torch.Tensor) -> list[Spoiled]:
    """What a function left in a copied argument, where it belongs; and margins that it wrote into."""
    start = (block.numel() - target.numel()) // 2
    end = start + target.numel()
    if not torch.equal(target, block[start:end]):
        target.copy_(block[start:end])
    sides = (("before", block[:start]), ("after", block[end:])) if start else ()
    return [
        (kind, side, count) for side, margin in sides if (count := int((margin != _MARGIN).sum()))
    ]


class Library:
    """Functions of the candidate's C source; tensors and arrays are passed as pointers."""

    def __init__(
        self, prototypes: dict[str, list[str]], launches: Launches, record: bool, runner: Runner
    ) -> None:
        self._prototypes = prototypes
        self._launches = launches
        self._record = record
        self._runner = runner
        self._paused = False
        self._records: list[RecordedCall] = []
        self._bytes: list[bytes] = []
        """What the arguments of recorded calls held; they name their places in this list."""
        self._size = 0

    def function(self, name: str) -> object:
        """One function of the source, ready to be called."""
        if name not in self._prototypes:
            known = ", ".join(sorted(self._prototypes)) or "none"
            raise AttributeError(f"the C source has no function {name}; it has {known}")
        types = self._prototypes[name]
        number = list(self._prototypes).index(name)

        def call(*args: object) -> None:
            if len(args) != len(types):
                raise TypeError(f"{name} takes {len(types)} arguments, got {len(args)}")
            for i, (kind, value) in enumerate(zip(types, args, strict=True)):
                _check_argument(name, i, kind, value)
            self._launches.launches += 1
            if self._launches.ghost:
                return
            if self._record and not self._paused:
                self._keep(name, types, args)
            self._launches.recorder.note(name, args, {})
            with Pause():
                spoiled = self._runner.call(number, types, list(args))
            for kind, side, count in spoiled:
                self._launches.fault(
                    "out-of-bounds write", f"{side} an argument {kind} of {name}", count
                )

        return call

    def recording(self, on: bool) -> None:
        """Calls are recorded from now on, where they are at all, or not."""
        self._paused = not on

    def _keep(self, name: str, types: list[str], args: Sequence[Any]) -> None:
        """The arguments of a call as bytes, for a run with sanitizers."""
        kept: list[RecordedArgument] = []
        held: list[bytes] = []
        for kind, value in zip(types, args, strict=True):
            if not kind.endswith("*"):
                kept.append(
                    RecordedArgument(float(value) if isinstance(value, float) else int(value))
                )
                continue
            start, size = _span(value)
            self._size += size
            if self._size > _RECORD_BYTES:
                return
            kept.append(RecordedArgument(None, start, size, len(self._bytes) + len(held)))
            held.append(ctypes.string_at(start, size))
        self._records.append(RecordedCall(name, kept))
        self._bytes += held

    def take_records(self) -> tuple[list[RecordedCall], list[bytes]]:
        """What was recorded since the last time."""
        found = self._records, self._bytes
        self._records, self._bytes, self._size = [], [], 0
        return found


def ask_for_nothing(library: Library, times: int) -> None:
    """Messages to the functions that ask for none of them."""
    for _ in range(times):
        library._runner.call(-1, [], [])


def _span(value: Any) -> tuple[int, int]:
    """First address and size in bytes of what a tensor or array reaches."""
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(plain(value))
    shape, stride = value.shape, value.stride()
    count = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    return value.data_ptr(), count * value.element_size()


def _check_argument(name: str, index: int, kind: str, value: Any) -> None:
    """A TypeError for what the function's parameter is not."""
    where = f"argument {index + 1} of {name}"
    if not kind.endswith("*"):
        if isinstance(value, torch.Tensor | np.ndarray):
            raise TypeError(f"{where} is {kind}, got a tensor")
        if kind not in ("float", "double"):
            int(value)
        return
    if not isinstance(value, torch.Tensor | np.ndarray):
        raise TypeError(f"{where} is a pointer, got {type(value).__name__}")
    base = kind.removesuffix("*").strip()
    dtype = str(value.dtype).removeprefix("torch.")
    if base != "void" and dtype not in _ELEMENTS.get(base, ()):
        raise TypeError(f"{where} points to {base}, got elements of type {dtype}")


def module(library: Library) -> ModuleType:
    """What `from torchstone_kernel import library` finds: functions, and no way behind them."""

    class Functions:
        """The functions of the C source by their names."""

        __slots__ = ()

        def __getattr__(self, name: str) -> object:
            return library.function(name)

    made = ModuleType("torchstone_kernel")
    made.library = Functions()  # type: ignore[attr-defined]
    return made
