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
from torchstone.kernels.messages.facts import Argument, KernelLaunch

ALIGNED_BYTES = 16
"""What Triton calls aligned; a device's allocator aligns every buffer to more."""


class UndescribedError(TypeError):
    """An argument that cannot be handed to another process."""


def described(
    function: Any, constants: Sequence[str], args: Sequence[object], kwargs: Mapping[str, object]
) -> KernelLaunch:
    """One launch: the kernel by name and line, its arguments, and options such as `num_warps`."""
    names = list(inspect.signature(function).parameters)
    given = dict(zip(names, args, strict=False)) | dict(kwargs)
    return KernelLaunch(
        function.__name__,
        function.__code__.co_firstlineno,
        {name: argument(value) for name, value in given.items()},
        [name for name in given if name in constants or name not in names],
        plain_globals(function.__globals__),
    )


def argument(value: object) -> Argument:
    """One argument as plain data."""
    if isinstance(value, torch.Tensor):
        offset = value.storage_offset() * value.element_size()
        return Argument("pointer", name_of(value.dtype), aligned=offset % ALIGNED_BYTES == 0)
    if isinstance(value, np.generic):
        return Argument("numpy", value.dtype.name, value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return Argument("float", repr(value))
    if value is None or isinstance(value, bool | int | float | str):
        return Argument("plain", value=value)
    if isinstance(value, torch.dtype):
        return Argument("torch_dtype", name_of(value))
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return Argument("tuple", items=[argument(item) for item in value])
    return _of_triton(value)


def _of_triton(value: Any) -> Argument:
    """What Triton itself hands around; told by names, because its classes exist twice here."""
    kind = type(value).__name__
    if kind == "constexpr":
        return Argument("constexpr", items=[argument(value.value)])
    if kind == "dtype":
        return Argument("triton_dtype", str(value))
    if kind == "InterpretedFunction":
        return Argument("function", value.fn.__name__)
    if kind == "TensorDescriptor":
        return Argument("descriptor", items=[argument(value.base)], shape=list(value.shape),
                        strides=list(value.strides), block=list(value.block_shape))  # fmt: skip
    return Argument("other", kind)


def plain_globals(found: Mapping[str, object]) -> dict[str, str]:
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


def revived(told: Argument, triton: Any, function: Callable[[str], object]) -> object:
    """The argument again, as Triton's own launcher would see it; `function` finds a kernel."""
    inner = [revived(item, triton, function) for item in told.items]
    makers: dict[str, Callable[[], object]] = {
        "pointer": lambda: _Pointer(dtype_of(told.name), told.aligned),
        "numpy": lambda: np.dtype(told.name).type(told.value),
        "float": lambda: float(told.name),
        "torch_dtype": lambda: dtype_of(told.name),
        "tuple": lambda: tuple(inner),
        "constexpr": lambda: triton.language.constexpr(inner[0]),
        "triton_dtype": lambda: triton.language.dtype(told.name),
        "function": lambda: function(told.name),
        "descriptor": lambda: triton.tools.tensor_descriptor.TensorDescriptor(
            inner[0], told.shape, told.strides, told.block
        ),
        "plain": lambda: told.value,
    }
    if told.kind not in makers:
        raise UndescribedError(f"an argument of type {told.name}")
    return makers[told.kind]()
