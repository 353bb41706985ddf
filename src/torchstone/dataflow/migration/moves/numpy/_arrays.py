"""What entries for numpy share: which arrays they take, and random arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchstone.dataflow.migration.moves.numpy._elementwise import torch_dtype
from torchstone.dataflow.migration.specification import Refusal, refuse

FLOAT_ROUNDING = {
    "float16": 2e-3,
    "float32": 2e-6,
    "float64": 1e-14,
    "complex64": 2e-6,
    "complex128": 1e-14,
}
"""What another order of additions may change, relative to the largest value of the result."""


def not_an_array(value: Any) -> Refusal | None:
    if not hasattr(value, "dtype") or not hasattr(value, "shape") or isinstance(value, np.generic):
        kind = type(value).__name__
        return refuse(
            f"{kind} is not an array", f"{kind} 不是数组",
            "make an array of it before the call", "请在调用前把它转换为数组",
        )  # fmt: skip
    try:
        torch_dtype(np.dtype(value.dtype))
    except TypeError:
        return refuse(f"torch computes no {value.dtype}", f"torch 不支持 {value.dtype} 运算")
    if not value.size:
        return refuse("an empty array", "空数组")
    return None


def not_default(**options: Any) -> Refusal | None:
    """Arguments that have no counterpart on the device."""
    for name, value in options.items():
        if value is not None and value is not np._NoValue:
            return refuse(
                f"no kernel for {name}=",
                f"没有支持 {name}= 的算子",
                f"call it without {name}=",
                f"请去掉 {name}=",
            )
    return None


def rounding(dtype: Any) -> float:
    return FLOAT_ROUNDING.get(str(np.dtype(dtype)), 0.0)


def random_array(
    rng: np.random.Generator, dtypes: str = "uint8 int64 float32 float64", ndim: int | None = None
) -> np.ndarray:
    count = int(rng.integers(1, 4)) if ndim is None else ndim
    shape = tuple(int(size) for size in rng.integers(1, 9, count))
    return array_of(rng, shape, str(rng.choice(dtypes.split())))


def array_of(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    if dtype.startswith("complex"):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0 if dtype == "uint8" else -100, 200, shape).astype(dtype)


def random_axis(rng: np.random.Generator, array: np.ndarray) -> int | None:
    return None if rng.integers(3) == 0 else int(rng.integers(-array.ndim, array.ndim))
