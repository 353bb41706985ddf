"""What reductions over an axis lose in each format, measured against fp64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from torchstone.tensors.formats import Format, quantize, round_to_format

REDUCTIONS = ("sum", "running sum", "mean", "norm", "softmax", "matmul")
"""`sum` accumulates in fp32 and rounds the result, as torch does; `running sum` rounds every step, as
a loop or an accumulator in that format does."""
_POSITIONS = 1024
_LENGTH = 128
_VALUES = 1 << 13
_MATMUL_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class Reduction:
    """One operation over the axis in one format."""

    operation: str
    format: str
    error: float
    """Norm of the error over the norm of the exact result; infinite where the result is."""


def along_axis(values: torch.Tensor, axis: int) -> torch.Tensor:
    """A matrix of (positions, indices of the axis), thinned out where it is long."""
    matrix = values.movedim(axis, -1).reshape(-1, values.shape[axis])
    columns = max(1, -(-matrix.shape[1] // _LENGTH))
    most = min(_POSITIONS, max(1, _VALUES // min(matrix.shape[1], _LENGTH)))
    rows = max(1, -(-matrix.shape[0] // most))
    thin = matrix[::rows, ::columns]
    return torch.where(thin.isfinite(), thin, 0.0)


def measure_reductions(matrix: torch.Tensor, formats: tuple[Format, ...]) -> tuple[Reduction, ...]:
    """Every operation in every format on a matrix whose last axis is reduced."""
    weights = _weights(matrix.shape[1])
    exact = {name: _OPERATIONS[name](matrix.double(), weights) for name in _OPERATIONS}
    exact["running sum"] = exact["sum"]
    found = []
    for item in formats:
        stored = quantize(matrix, item).values.float()
        results = {name: _OPERATIONS[name](stored, weights.float()) for name in _OPERATIONS}
        if item.scale == "none":  # a result has the type of its operands; of scaled formats, fp32
            results["running sum"] = _running_sum(stored, item)
            results = {name: _rounded(value, item) for name, value in results.items()}
        found += [
            Reduction(name, item.name, _distance(results[name], exact[name]))
            for name in REDUCTIONS
            if name in results
        ]
    return tuple(found)


def _weights(length: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(length, _MATMUL_COLUMNS, generator=generator).double()


_OPERATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": lambda x, _: x.sum(-1),
    "mean": lambda x, _: x.mean(-1),
    "norm": lambda x, _: torch.linalg.vector_norm(x, dim=-1),
    "softmax": lambda x, _: x.softmax(-1),
    "matmul": lambda x, w: x @ w,
}


def _rounded(values: torch.Tensor, format: Format) -> torch.Tensor:
    return round_to_format(values, format.element, format.saturates)


def _running_sum(stored: torch.Tensor, format: Format) -> torch.Tensor:
    total = torch.zeros(stored.shape[0])
    for column in stored.unbind(1):  # as many steps as the axis is long, at most _LENGTH
        total = _rounded(total + column, format)
    return total


def _distance(low: torch.Tensor, high: torch.Tensor) -> float:
    if not bool(low.isfinite().all()):
        return float("inf")
    norm = float(high.norm())
    return float((low.double() - high).norm()) / norm if norm > 0 else 0.0


def share_lost(
    large: torch.Tensor,
    small: torch.Tensor,
    add: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> float:
    """How much of the small index an addition loses: the median of |error| over |small|, at most 1."""
    used = (small != 0) & large.isfinite() & small.isfinite()
    if not bool(used.any()):
        return 0.0
    a, b = large[used].double(), small[used].double()
    error = (add(a, b).double() - (a + b)).abs() / b.abs()
    error = torch.where(error.isfinite(), error, 1.0)
    return min(float(error.median()), 1.0)


def add_in_format(format: Format) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Addition of values that are stored in the format, with a result in it."""

    def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return _rounded(_rounded(a.float(), format) + _rounded(b.float(), format), format)

    return add


def add_in_fp32(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.float() + b.float()
