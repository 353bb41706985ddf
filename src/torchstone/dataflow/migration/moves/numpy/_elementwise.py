"""ufuncs on tensors with the dtype rules of numpy: `uint8 / 255.0` is float64 here too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

TORCH_OF: dict[str, Callable[..., torch.Tensor]] = {
    "add": torch.add,
    "subtract": torch.sub,
    "multiply": torch.mul,
    "true_divide": torch.true_divide,
    "negative": torch.neg,
    "absolute": torch.abs,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "square": torch.square,
    "sqrt": torch.sqrt,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "rint": torch.round,
    "trunc": torch.trunc,
    "sign": torch.sign,
    "equal": torch.eq,
    "not_equal": torch.ne,
    "less": torch.lt,
    "less_equal": torch.le,
    "greater": torch.gt,
    "greater_equal": torch.ge,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_not": torch.logical_not,
    "logical_xor": torch.logical_xor,
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor,
    "invert": torch.bitwise_not,
    "isnan": torch.isnan,
    "isfinite": torch.isfinite,
    "isinf": torch.isinf,
    "exp": torch.exp,
    "log": torch.log,
    "log1p": torch.log1p,
    "expm1": torch.expm1,
    "log2": torch.log2,
    "log10": torch.log10,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "tanh": torch.tanh,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "arctan": torch.arctan,
    "arctan2": torch.arctan2,
    "hypot": torch.hypot,
    "power": torch.pow,
}
ROUNDED = frozenset(
    "sqrt exp log log1p expm1 log2 log10 sin cos tan tanh sinh cosh arctan arctan2 hypot power".split()
)
"""The last bit depends on the mathematical library; torch rounds even square roots otherwise on some CPUs."""

_DTYPES = {
    np.dtype(name): getattr(torch, name)
    for name in "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
}
_BACK = {tensor: array for array, tensor in _DTYPES.items()}


def torch_dtype(dtype: np.dtype[Any]) -> torch.dtype:
    if dtype not in _DTYPES:
        raise TypeError(f"torch computes no {dtype}")
    found: torch.dtype = _DTYPES[dtype]
    return found


def numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    return _BACK[dtype]


def apply_ufunc(name: str, *operands: Any) -> torch.Tensor:
    """The ufunc of this name on tensors and Python scalars."""
    ufunc = getattr(np, name)
    kinds = tuple(_operand_kind(item) for item in operands) + (None,) * ufunc.nout
    resolved = ufunc.resolve_dtypes(kinds)
    device = next(item.device for item in operands if isinstance(item, torch.Tensor))
    inputs = [
        _as_tensor(item, torch_dtype(dtype), device)
        for item, dtype in zip(operands, resolved, strict=False)
    ]
    result = TORCH_OF[name](*inputs)
    wanted = torch_dtype(resolved[-1])
    return result if result.dtype == wanted else result.to(wanted)


def _operand_kind(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return numpy_dtype(item.dtype)
    if type(item) in (int, float, complex):
        return type(item)  # a Python scalar is weak: the array decides
    if isinstance(item, bool):
        return np.dtype(bool)
    if isinstance(item, np.generic):
        return item.dtype
    raise TypeError(f"{type(item).__name__} is neither an array nor a number")


def _as_tensor(item: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if isinstance(item, torch.Tensor):
        return item.to(dtype)
    value = item.item() if isinstance(item, np.generic) else item
    if dtype == torch.float32 and isinstance(value, float):
        value = float(np.float32(value))
    return torch.tensor(value, dtype=dtype, device=device)
