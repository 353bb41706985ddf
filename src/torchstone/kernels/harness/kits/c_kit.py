"""C: the compiled library as `torchstone_kernel.library`, whose calls are counted and recorded."""

from __future__ import annotations

import ctypes
from types import ModuleType
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.calling.launches import Launches
from torchstone.kernels.harness.calling.monitor import plain

_SCALARS: dict[str, Any] = {
    "float": ctypes.c_float, "double": ctypes.c_double, "int": ctypes.c_int,
    "long": ctypes.c_long, "long long": ctypes.c_longlong, "size_t": ctypes.c_size_t,
    "unsigned": ctypes.c_uint, "unsigned int": ctypes.c_uint, "char": ctypes.c_byte,
    "int8_t": ctypes.c_int8, "uint8_t": ctypes.c_uint8, "int16_t": ctypes.c_int16,
    "uint16_t": ctypes.c_uint16, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "ptrdiff_t": ctypes.c_ssize_t,
    "bool": ctypes.c_bool, "_Bool": ctypes.c_bool, "unsigned char": ctypes.c_uint8,
    "signed char": ctypes.c_int8, "unsigned long": ctypes.c_ulong, "short": ctypes.c_short,
}  # fmt: skip
_ELEMENTS = {
    "float": ("float32",), "double": ("float64",), "int": ("int32",), "int32_t": ("int32",),
    "long": ("int64",), "long long": ("int64",), "int64_t": ("int64",), "int8_t": ("int8",),
    "signed char": ("int8",), "char": ("int8", "uint8", "bool"), "uint8_t": ("uint8", "bool"),
    "unsigned char": ("uint8", "bool"), "bool": ("bool",), "_Bool": ("bool",),
    "int16_t": ("int16",), "uint16_t": ("float16", "bfloat16", "uint16"), "short": ("int16",),
    "_Float16": ("float16",), "uint32_t": ("uint32",), "uint64_t": ("uint64",),
}  # fmt: skip
_RECORD_BYTES = 8 << 20


class Library:
    """Functions of the candidate's C source; tensors and arrays are passed as pointers."""

    def __init__(
        self, path: str, prototypes: dict[str, list[str]], launches: Launches, record: bool
    ) -> None:
        self._library = ctypes.CDLL(path)
        self._prototypes = prototypes
        self._launches = launches
        self._record = record
        self._paused = False
        self._records: list[dict[str, Any]] = []
        self._size = 0

    def function(self, name: str) -> Any:
        """One function of the source, ready to be called."""
        if name not in self._prototypes:
            known = ", ".join(sorted(self._prototypes)) or "none"
            raise AttributeError(f"the C source has no function {name}; it has {known}")
        function = getattr(self._library, name)
        types = self._prototypes[name]
        function.argtypes = [
            ctypes.c_void_p if item.endswith("*") else _SCALARS[item] for item in types
        ]
        function.restype = None

        def call(*args: Any) -> None:
            if len(args) != len(types):
                raise TypeError(f"{name} takes {len(types)} arguments, got {len(args)}")
            given = [_argument(name, i, kind, value)
                     for i, (kind, value) in enumerate(zip(types, args, strict=True))]  # fmt: skip
            self._launches.launches += 1
            if self._launches.ghost:
                return
            if self._record and not self._paused:
                self._keep(name, types, args)
            self._launches.recorder.note(name, args, {})
            function(*given)

        return call

    def recording(self, on: bool) -> None:
        """Calls are recorded from now on, where they are at all, or not."""
        self._paused = not on

    def _keep(self, name: str, types: list[str], args: Any) -> None:
        """The arguments of a call as bytes, for a run with sanitizers."""
        kept: list[dict[str, Any]] = []
        for kind, value in zip(types, args, strict=True):
            if not kind.endswith("*"):
                kept.append({"scalar": float(value) if isinstance(value, float) else int(value)})
                continue
            start, size = _span(value)
            self._size += size
            data = ctypes.string_at(start, size) if self._size <= _RECORD_BYTES else b""
            kept.append({"start": start, "size": size, "data": data})
        if self._size <= _RECORD_BYTES:
            self._records.append({"function": name, "arguments": kept})


def taken(library: Library) -> list[dict[str, Any]]:
    """What was recorded since the last time."""
    found, library._records, library._size = library._records, [], 0
    return found


def _span(value: Any) -> tuple[int, int]:
    """First address and size in bytes of what a tensor or array reaches."""
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(plain(value))
    shape, stride = value.shape, value.stride()
    count = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    return value.data_ptr(), count * value.element_size()


def _argument(name: str, index: int, kind: str, value: Any) -> Any:
    where = f"argument {index + 1} of {name}"
    if not kind.endswith("*"):
        if isinstance(value, torch.Tensor | np.ndarray):
            raise TypeError(f"{where} is {kind}, got a tensor")
        return value if kind in ("float", "double") else int(value)
    if not isinstance(value, torch.Tensor | np.ndarray):
        raise TypeError(f"{where} is a pointer, got {type(value).__name__}")
    base = kind.removesuffix("*").strip()
    dtype = str(value.dtype).removeprefix("torch.")
    if base != "void" and dtype not in _ELEMENTS.get(base, ()):
        raise TypeError(f"{where} points to {base}, got elements of type {dtype}")
    return _span(value)[0]


def module(library: Library) -> ModuleType:
    """What `from torchstone_kernel import library` finds: functions, and no way behind them."""

    class Functions:
        """The functions of the C source by their names."""

        __slots__ = ()

        def __getattr__(self, name: str) -> Any:
            return library.function(name)

    made = ModuleType("torchstone_kernel")
    made.library = Functions()  # type: ignore[attr-defined]
    return made
