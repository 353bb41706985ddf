"""`torch.cuda.FloatTensor` and its like: constructors, conversions and checks of older programs."""

from __future__ import annotations

from typing import Any

import torch

from torchstone.dryrun.script.fakes.calls import Calls
from torchstone.dryrun.script.patches import put

_DTYPES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}
_PREFIX = "torch.cuda."


class CudaType(type):
    """The type of the types; torch's own refuse everything in a build without CUDA."""

    dtype: torch.dtype
    is_cuda = True
    is_sparse = False
    layout = torch.strided

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, torch.Tensor) and value.is_cuda and value.dtype == cls.dtype

    def __call__(cls, *given: Any, device: Any = "cuda") -> torch.Tensor:
        """Sizes give memory without values; data are copied."""
        if len(given) == 1 and isinstance(given[0], torch.Size):
            given = tuple(given[0])
        if all(isinstance(size, int) for size in given):
            return torch.empty(given or (0,), dtype=cls.dtype, device=device)
        return torch.as_tensor(given[0], dtype=cls.dtype, device=device)


def answer_legacy_types(calls: Calls) -> None:
    """From now on these types can be called, named in `.type(...)`, and asked for."""
    for name, dtype in _DTYPES.items():
        home = {"dtype": dtype, "__module__": "torch.cuda", "__qualname__": name}
        put(torch.cuda, name, CudaType(name, (), home))
    original = calls.handlers[torch.Tensor.type]

    def convert(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        wanted = _dtype_of(args[1] if len(args) > 1 else kwargs.get("dtype"))
        if wanted is None:
            return original(func, args, kwargs)
        with calls:
            return args[0].to(device="cuda", dtype=wanted)

    calls.handlers[torch.Tensor.type] = convert
    _answer_default_type()


def _answer_default_type() -> None:
    original = torch.set_default_tensor_type
    on_device = [False]
    construct = torch.Tensor.__new__

    def new(cls: Any, *given: Any, **named: Any) -> torch.Tensor:
        """`torch.Tensor(...)` is of the default type; torch reads that type below all modes."""
        made: torch.Tensor = construct(cls, *given, **named)
        return made.to("cuda") if on_device[0] and cls is torch.Tensor else made

    def set_default_tensor_type(wanted: Any) -> None:
        dtype = _dtype_of(wanted)
        on_device[0] = dtype is not None
        torch.set_default_device("cuda" if dtype is not None else "cpu")
        if dtype is None:
            original(wanted)
        else:
            torch.set_default_dtype(dtype)

    put(torch, "set_default_tensor_type", set_default_tensor_type)
    put(torch.Tensor, "__new__", staticmethod(new))


def _dtype_of(wanted: Any) -> torch.dtype | None:
    """The number format of a type of CUDA, given as such or by its name."""
    if isinstance(wanted, CudaType):
        return wanted.dtype
    if isinstance(wanted, str) and wanted.startswith(_PREFIX):
        return _DTYPES.get(wanted.removeprefix(_PREFIX))
    return None
