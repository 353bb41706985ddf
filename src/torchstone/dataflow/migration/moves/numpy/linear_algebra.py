"""Products of matrices; floats within the rounding of another order of additions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.numpy._arrays import (
    array_of,
    not_an_array,
    not_default,
    rounding,
)
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call, refuse


def _verdict(*arrays: Any) -> Case | Refusal:
    for item in arrays:
        if refused := not_an_array(item):
            return refused
        if item.dtype not in (np.float32, np.float64) or item.dtype != arrays[0].dtype:
            return refuse(
                "matrices that are not both float32 or float64", "矩阵不都是 float32 或 float64"
            )
    return Case(str(arrays[0].dtype), 0.0, 20 * rounding(arrays[0].dtype))


def matmul_case(x1: Any, x2: Any, out: Any = None) -> Case | Refusal:
    return not_default(out=out) or _verdict(x1, x2)


def matmul(x1: Tensor, x2: Tensor, out: None) -> Tensor:
    return torch.matmul(x1, x2)


def dot_case(a: Any, b: Any, out: Any = None) -> Case | Refusal:
    verdict = not_default(out=out) or _verdict(a, b)
    if isinstance(verdict, Case) and (a.ndim > 2 or b.ndim > 2):
        return refuse("more than two dimensions", "维数超过 2", "use matmul", "请使用 matmul")
    return verdict


def dot(a: Tensor, b: Tensor, out: None) -> Tensor:
    return torch.matmul(a, b)


def norm_case(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Case | Refusal:
    if ord is not None or isinstance(axis, tuple):
        return refuse("a norm other than the default", "非默认范数")
    return _verdict(x)


def norm(x: Tensor, ord: None, axis: Any, keepdims: bool) -> Tensor:
    axes = tuple(range(x.ndim)) if axis is None else (axis,)
    return x.square().sum(axes, keepdim=keepdims).sqrt()


def inverse_case(a: Any) -> Case | Refusal:
    verdict = _verdict(a)
    if isinstance(verdict, Case):
        return Case(verdict.name, 0.0, 1e-3 if a.dtype == np.float32 else 1e-10)
    return verdict


def inverse(a: Tensor) -> Tensor:
    made: Tensor = torch.linalg.inv(a)
    return made


def einsum_case(subscripts: Any, *operands: Any, **kwargs: Any) -> Case | Refusal:
    if not isinstance(subscripts, str) or kwargs or not operands:
        return refuse("operands in another form", "操作数形式不同")
    return _verdict(*operands)


def einsum(subscripts: str, operands: list[Tensor], kwargs: dict[str, Any]) -> Tensor:
    product: Tensor = torch.einsum(subscripts, *operands)
    return product


def _two(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    inner = int(rng.integers(1, 20))
    dtype = str(rng.choice(["float32", "float64"]))
    return array_of(rng, (5, inner), dtype), array_of(rng, (inner, 4), dtype)


def pair_sample(rng: np.random.Generator) -> Call:
    return call(*_two(rng))


def norm_sample(rng: np.random.Generator) -> Call:
    return call(_two(rng)[0], axis=None if rng.integers(2) else 1)


def inverse_sample(rng: np.random.Generator) -> Call:
    dtype = str(rng.choice(["float32", "float64"]))
    return call(array_of(rng, (4, 4), dtype) + 5 * np.eye(4, dtype=dtype))


def einsum_sample(rng: np.random.Generator) -> Call:
    return call("ij,jk->ik", *_two(rng))


MOVES = (
    OpSpec(
        "numpy.matmul", matmul_case, pair_sample, matmul, {"x1": "array", "x2": "array"}, "array"
    ),
    OpSpec("numpy.dot", dot_case, pair_sample, dot, {"a": "array", "b": "array"}, "array"),
    OpSpec("numpy.einsum", einsum_case, einsum_sample, einsum, {"operands": "arrays"}, "array"),
    OpSpec("numpy.linalg.norm", norm_case, norm_sample, norm, {"x": "array"}, "array"),
    OpSpec("numpy.linalg.inv", inverse_case, inverse_sample, inverse, {"a": "array"}, "array"),
)
