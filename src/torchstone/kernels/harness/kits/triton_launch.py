"""A Triton launch as plain data: what each argument was, so that a compiler can be told elsewhere.

Tensors become their dtype and alignment, numbers themselves; nothing is kept alive.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.values import dtype_of, name_of

Described = dict[str, Any]
ALIGNED_BYTES = 16
"""What Triton calls aligned; a device's allocator aligns every buffer to more."""


class UndescribedError(TypeError):
    """An argument that cannot be handed to another process."""


def described(
    function: Any, constants: Sequence[str], args: Any, kwargs: Mapping[str, Any]
) -> Described:
    """One launch: the kernel by name and line, its arguments, and options such as `num_warps`.

    What is no argument at run time is named under `constants`: other code is made for each value.
    """
    names = list(inspect.signature(function).parameters)
    given = dict(zip(names, args, strict=False)) | dict(kwargs)
    return {
        "kernel": function.__name__, "line": function.__code__.co_firstlineno,
        "arguments": {name: argument(value) for name, value in given.items()},
        "constants": [name for name in given if name in constants or name not in names],
        "globals": plain_globals(function.__globals__),
    }  # fmt: skip


def argument(value: Any) -> Described:
    """One argument as plain data."""
    if isinstance(value, torch.Tensor):
        offset = value.storage_offset() * value.element_size()
        return {"pointer": name_of(value.dtype), "aligned": offset % ALIGNED_BYTES == 0}
    if isinstance(value, np.generic):
        return {"numpy": value.dtype.name, "value": value.item()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return {"plain": value}
    if isinstance(value, torch.dtype):
        return {"torch_dtype": name_of(value)}
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return {"tuple": [argument(item) for item in value]}
    return _of_triton(value)


def _of_triton(value: Any) -> Described:
    """What Triton itself hands around; told by names, because its classes exist twice here."""
    kind = type(value).__name__
    if kind == "constexpr":
        return {"constexpr": argument(value.value)}
    if kind == "dtype":
        return {"triton_dtype": str(value)}
    if kind == "InterpretedFunction":
        return {"function": value.fn.__name__}
    if kind == "TensorDescriptor":
        return {"descriptor": argument(value.base), "shape": list(value.shape),
                "strides": list(value.strides), "block": list(value.block_shape)}  # fmt: skip
    return {"other": kind}


def plain_globals(found: Mapping[str, Any]) -> dict[str, str]:
    """The numbers and words at the top of a file, which its kernels may be made from."""
    return {
        name: repr(getattr(value, "value", value))
        for name, value in found.items()
        if not name.startswith("__")
        and (isinstance(value, bool | int | float | str) or type(value).__name__ == "constexpr")
    }


class _Pointer:
    """Stands for a tensor of a device: a dtype and an address."""

    def __init__(self, dtype: torch.dtype, aligned: bool) -> None:
        self.dtype = dtype
        self._address = 0 if aligned else 4

    def data_ptr(self) -> int:
        return self._address

    def ptr_range(self) -> int:
        return 0


def revived(told: Described, triton: Any, function: Callable[[str], Any]) -> Any:
    """The argument again, as Triton's own launcher would see it; `function` finds a kernel."""
    if "pointer" in told:
        return _Pointer(dtype_of(told["pointer"]), bool(told["aligned"]))
    if "numpy" in told:
        return np.dtype(told["numpy"]).type(told["value"])
    if "float" in told:
        return float(told["float"])
    if "torch_dtype" in told:
        return dtype_of(told["torch_dtype"])
    if "tuple" in told:
        return tuple(revived(item, triton, function) for item in told["tuple"])
    if "constexpr" in told:
        return triton.language.constexpr(revived(told["constexpr"], triton, function))
    if "triton_dtype" in told:
        return triton.language.dtype(told["triton_dtype"])
    if "function" in told:
        return function(told["function"])
    if "descriptor" in told:
        base = revived(told["descriptor"], triton, function)
        made = triton.tools.tensor_descriptor.TensorDescriptor
        return made(base, told["shape"], told["strides"], told["block"])
    if "other" in told:
        raise UndescribedError(f"an argument of type {told['other']}")
    return told["plain"]
