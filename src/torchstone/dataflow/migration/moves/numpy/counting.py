"""numpy.histogram of uint8 values and numpy.count_nonzero."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.numpy._arrays import (
    array_of,
    not_an_array,
    not_default,
    random_array,
)
from torchstone.dataflow.migration.moves.numpy.reductions import axes_of
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call, refuse


def histogram_case(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Case | Refusal:
    if refused := not_an_array(a) or not_default(density=density, weights=weights):
        return refused
    if a.dtype != np.uint8 or bins != 256 or tuple(range or ()) not in ((0, 256), (0.0, 256.0)):
        return refuse("only 256 bins of uint8", "仅支持 uint8 的 256 个区间")
    return Case("uint8, 256 bins")


def histogram(
    a: Tensor, bins: int, range: Any, density: None, weights: None
) -> tuple[Tensor, np.ndarray]:
    return torch.bincount(a.flatten().long(), minlength=256), np.linspace(0, 256, 257)


def histogram_sample(rng: np.random.Generator) -> Call:
    return call(array_of(rng, (9, 8), "uint8"), 256, (0, 256))


def count_case(a: Any, axis: Any = None, keepdims: Any = False) -> Case | Refusal:
    if keepdims or axis is None:
        return refuse("numpy returns a Python number", "numpy 返回 Python 数字")
    return not_an_array(a) or Case("any")


def count_nonzero(a: Tensor, axis: Any, keepdims: bool) -> Tensor:
    return (a != 0).sum(axes_of(a, axis))


def count_sample(rng: np.random.Generator) -> Call:
    array = random_array(rng)
    return call(array, int(rng.integers(array.ndim)))


MOVES = (
    OpSpec("numpy.count_nonzero", count_case, count_sample, count_nonzero, {"a": "array"}, "array"),
    OpSpec(
        "numpy.histogram",
        histogram_case,
        histogram_sample,
        histogram,
        {"a": "array"},
        ("array", "value"),
    ),
)
