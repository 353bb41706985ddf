"""numpy.fft, within the rounding of another algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.numpy._arrays import array_of, not_an_array, not_default
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call, refuse


def case(
    a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None
) -> Case | Refusal:
    if refused := not_an_array(a) or not_default(norm=norm, out=out):
        return refused
    if a.dtype not in (np.float32, np.float64, np.complex64, np.complex128):
        return refuse(
            f"{a.dtype} values", f"{a.dtype} 数据", "convert to float64", "请转换为 float64"
        )
    return Case(str(a.dtype), 0.0, 2e-6 if a.dtype in (np.float32, np.complex64) else 1e-14)


def _real_case(
    a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None
) -> Case | Refusal:
    if getattr(getattr(a, "dtype", None), "kind", "") == "c":
        return refuse("complex values", "复数数据")
    return case(a, n, axis, norm, out)


def _transform(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def computed(a: Tensor, n: Any, axis: int, norm: None, out: None) -> Tensor:
        return function(a, n, axis)

    return computed


def sample(rng: np.random.Generator) -> Call:
    return call(
        array_of(rng, (3, int(rng.integers(2, 40))), str(rng.choice(["float32", "float64"])))
    )


_A = {"a": "array"}
MOVES = (
    OpSpec("numpy.fft.fft", case, sample, _transform(torch.fft.fft), _A, "array"),
    OpSpec("numpy.fft.ifft", case, sample, _transform(torch.fft.ifft), _A, "array"),
    OpSpec("numpy.fft.rfft", _real_case, sample, _transform(torch.fft.rfft), _A, "array"),
    OpSpec("numpy.fft.irfft", case, sample, _transform(torch.fft.irfft), _A, "array"),
)
