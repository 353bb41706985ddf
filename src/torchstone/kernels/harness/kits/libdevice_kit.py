"""Triton's device functions under the interpreter, which has none: numpy's and torch's stand in."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

_NUMPY: dict[str, Callable[..., object]] = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil,
    "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "fast_expf": np.exp, "fast_logf": np.log, "fast_sinf": np.sin,
    "fast_cosf": np.cos, "floor": np.floor, "fmod": np.fmod, "hypot": np.hypot,
    "isinf": np.isinf, "isnan": np.isnan, "log": np.log, "log10": np.log10, "log1p": np.log1p,
    "log2": np.log2, "nearbyint": np.rint, "pow": np.power, "rint": np.rint, "round": np.round,
    "signbit": np.signbit, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh, "trunc": np.trunc,
}  # fmt: skip
_TORCH: dict[str, Callable[..., object]] = {
    "erf": torch.erf, "erfc": torch.erfc, "erfinv": torch.erfinv, "lgamma": torch.lgamma,
    "rsqrt": torch.rsqrt, "j0": torch.special.bessel_j0, "fast_tanhf": torch.tanh,
}  # fmt: skip


def install() -> None:
    """Replace the functions that exist for devices only."""
    home = importlib.import_module("triton.language.extra.libdevice")
    for name, function in _NUMPY.items():
        if hasattr(home, name):
            setattr(home, name, _stand_in(function))
    for name, function in _TORCH.items():
        if hasattr(home, name):
            setattr(home, name, _stand_in(_by_torch(function)))


def _by_torch(function: Callable[..., Any]) -> Callable[..., object]:
    return lambda *arrays: function(*(torch.from_numpy(item) for item in arrays)).numpy()


def _stand_in(function: Callable[..., object]) -> Callable[..., object]:
    """A function on the interpreter's tensors made from one on arrays."""
    tl = importlib.import_module("triton.language")
    handle: Any = importlib.import_module("triton.runtime.interpreter").TensorHandle

    def call(*args: object, **_: object) -> Any:
        first = next(item for item in args if isinstance(item, tl.tensor))
        arrays = [
            np.ascontiguousarray(item.handle.data)
            if isinstance(item, tl.tensor)
            else np.asarray(getattr(item, "value", item), first.handle.data.dtype)
            for item in args
        ]
        found = np.asarray(function(*arrays))
        if found.dtype == np.bool_:
            scalar = tl.int1
        else:
            found, scalar = found.astype(first.handle.data.dtype), first.dtype
        kind = tl.block_type(scalar, first.type.shape) if first.type.is_block() else scalar
        made = handle(found.reshape(first.handle.data.shape), scalar, dict(first.handle.attr))
        return tl.tensor(made, kind)

    return call
