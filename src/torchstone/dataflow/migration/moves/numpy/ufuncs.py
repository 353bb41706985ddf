"""Elementwise functions of numpy; the dtype of the result is numpy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from torchstone.dataflow.migration.moves.numpy._arrays import (
    array_of,
    not_an_array,
    not_default,
    random_array,
    rounding,
)
from torchstone.dataflow.migration.moves.numpy._elementwise import ROUNDED, TORCH_OF, apply_ufunc
from torchstone.dataflow.migration.specification import (
    Call,
    Case,
    OpSpec,
    Refusal,
    Sample,
    call,
    refuse,
)

_FLOATS_ONLY = frozenset("isnan isfinite isinf sqrt floor ceil rint trunc".split()) | ROUNDED
_INTS_ONLY = frozenset("bitwise_and bitwise_or bitwise_xor invert".split())
_POSITIVE = frozenset("sqrt log log1p log2 log10 power".split())


def _verdict(name: str, operands: tuple[Any, ...]) -> Case | Refusal:
    arrays = [item for item in operands if isinstance(item, np.ndarray) or hasattr(item, "tensor")]
    if not arrays:
        return refuse("no array among the operands", "操作数中没有数组")
    for item in arrays:
        if refused := not_an_array(item):
            return refused
    if name == "sign" and any(np.dtype(item.dtype).kind == "c" for item in arrays):
        return refuse("complex numbers", "复数")
    try:
        kinds = tuple(_kind(item) for item in operands)
        resolved = getattr(np, name).resolve_dtypes((*kinds, None))
    except (TypeError, ValueError) as error:
        return refuse(str(error), str(error))
    label = " ".join(map(str, resolved))
    if str(resolved[0]) == "float16":
        return refuse("float16 is computed in another precision", "float16 的计算精度不同")
    return Case(label, 0.0, 4 * rounding(resolved[-1]) if name in ROUNDED else 0.0)


def _kind(item: Any) -> Any:
    if hasattr(item, "dtype"):
        return np.dtype(item.dtype)
    if type(item) in (int, float, complex):
        return type(item)
    raise TypeError(f"{type(item).__name__} is neither an array nor a number")


def _unary(name: str) -> OpSpec:
    def case(x: Any, out: Any = None, where: Any = None, dtype: Any = None) -> Case | Refusal:
        return not_default(out=out, where=where, dtype=dtype) or _verdict(name, (x,))

    def backend(x: Tensor, out: None, where: None, dtype: None) -> Tensor:
        return apply_ufunc(name, x)

    return OpSpec(f"numpy.{name}", case, _unary_sample(name), backend, {"x": "array"}, "array")


def _binary(name: str) -> OpSpec:
    def case(
        x1: Any, x2: Any, out: Any = None, where: Any = None, dtype: Any = None
    ) -> Case | Refusal:
        return not_default(out=out, where=where, dtype=dtype) or _verdict(name, (x1, x2))

    def backend(x1: Any, x2: Any, out: None, where: None, dtype: None) -> Tensor:
        return apply_ufunc(name, x1, x2)

    data = {"x1": "array", "x2": "array"}
    return OpSpec(f"numpy.{name}", case, _binary_sample(name), backend, data, "array")


def _dtypes(name: str) -> str:
    if name in _INTS_ONLY:
        return "uint8 int32 int64 bool"
    return "float32 float64" if name in _FLOATS_ONLY else "uint8 int32 int64 float32 float64"


def _unary_sample(name: str) -> Sample:
    def sample(rng: np.random.Generator) -> Call:
        x = random_array(rng, _dtypes(name))
        return call(np.abs(x) if name in _POSITIVE else x)

    return sample


def _binary_sample(name: str) -> Sample:
    def sample(rng: np.random.Generator) -> Call:
        x = random_array(rng, _dtypes(name))
        if rng.integers(2) and name not in _INTS_ONLY:
            number: Any = [2, 255.0, 3][int(rng.integers(3))]
            return call(np.abs(x), number) if name == "power" else call(x, number)
        dtype = str(x.dtype) if name in _INTS_ONLY else str(rng.choice(_dtypes(name).split()))
        y = array_of(rng, x.shape[1:] if rng.integers(2) else x.shape, dtype)
        if not y.shape:
            y = y.reshape(1)
        return call(np.abs(x), np.abs(y)) if name == "power" else call(x, y)

    return sample


def _moves(names: Callable[[int], bool]) -> list[str]:
    return [name for name in TORCH_OF if names(getattr(np, name).nin)]


_SKIPPED = {"sign"}
MOVES = (
    *(_unary(name) for name in _moves(lambda count: count == 1) if name not in _SKIPPED),
    *(_binary(name) for name in _moves(lambda count: count == 2) if name != "true_divide"),
    *(
        OpSpec(f"numpy.{alias}", spec.case, spec.sample, spec.backend, spec.args_trans, "array")
        for spec in [_binary("true_divide")]
        for alias in ("true_divide", "divide")
    ),
)
