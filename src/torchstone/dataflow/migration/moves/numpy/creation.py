"""Arrays out of nothing. They pay only where the plan keeps the result on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.numpy._elementwise import torch_dtype
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call, refuse


def _verdict(dtype: Any, **options: Any) -> Case | Refusal:
    if any(value not in (None, "C", "cpu") for value in options.values()):
        return refuse("an order, a device or a model array", "指定了 order、device 或 like")
    try:
        return Case(str(torch_dtype(np.dtype(dtype))))
    except TypeError:
        return refuse(f"torch has no {dtype}", f"torch 没有 {dtype}")


def zeros_case(shape: Any, dtype: Any = float, order: str = "C") -> Case | Refusal:
    return _verdict(dtype, order=order)


def ones_case(shape: Any, dtype: Any = None, order: str = "C") -> Case | Refusal:
    return _verdict(dtype or float, order=order)


def arange_case(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None
) -> Case | Refusal:
    if (
        not all(item is None or type(item) is int for item in (start, stop, step))
        or dtype is not None
    ):
        return refuse("only ranges of integers are exact", "仅整数区间是精确的")
    return Case("int64")


def eye_case(
    N: int, M: Any = None, k: int = 0, dtype: Any = float, order: str = "C"
) -> Case | Refusal:
    return (
        refuse("a diagonal beside the main one", "非主对角线")
        if k or M
        else _verdict(dtype, order=order)
    )


def _filled(value: int) -> Callable[..., Callable[[], Tensor]]:
    def make(shape: Any, dtype: Any, order: str, device: torch.device) -> Callable[[], Tensor]:
        size = (shape,) if isinstance(shape, int) else tuple(shape)
        return lambda: torch.full(
            size, value, dtype=torch_dtype(np.dtype(dtype or float)), device=device
        )

    return make


def arange(
    start: int, stop: Any, step: Any, dtype: None, device: torch.device
) -> Callable[[], Tensor]:
    first, last = (0, start) if stop is None else (start, stop)
    return lambda: torch.arange(first, last, step or 1, device=device)


def eye(
    N: int, M: Any, k: int, dtype: Any, order: str, device: torch.device
) -> Callable[[], Tensor]:
    return lambda: torch.eye(N, dtype=torch_dtype(np.dtype(dtype)), device=device)


def filled_sample(rng: np.random.Generator) -> Call:
    return call(
        tuple(int(size) for size in rng.integers(1, 6, 2)),
        str(rng.choice(["float64", "float32", "int64", "uint8"])),
    )


def arange_sample(rng: np.random.Generator) -> Call:
    return call(int(rng.integers(-5, 5)), int(rng.integers(6, 30)), int(rng.integers(1, 4)))


def eye_sample(rng: np.random.Generator) -> Call:
    return call(int(rng.integers(1, 8)), dtype=str(rng.choice(["float64", "float32"])))


MOVES = (
    OpSpec("numpy.zeros", zeros_case, filled_sample, _filled(0), {}, "array", "FactoryOp"),
    OpSpec("numpy.ones", ones_case, filled_sample, _filled(1), {}, "array", "FactoryOp"),
    OpSpec("numpy.arange", arange_case, arange_sample, arange, {}, "array", "FactoryOp"),
    OpSpec("numpy.eye", eye_case, eye_sample, eye, {}, "array", "FactoryOp"),
)
