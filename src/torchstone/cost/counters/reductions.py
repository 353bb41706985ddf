"""Reductions: one FLOP per input element; what squares first, or keeps two sums, takes more.

Sorting n elements is counted as log2 n comparisons for each of them.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from math import ceil, log2
from typing import Any

import torch
from torch import Tensor

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import elements, pick

FAMILY = Family("reductions")


@FAMILY.counts(
    "aten.sum",
    "aten.nansum",
    "aten.mean",
    "aten.nanmean",
    "aten.prod",
    "aten.all",
    "aten.any",
    "aten.amax",
    "aten.amin",
    "aten.argmax",
    "aten.argmin",
    "aten.count_nonzero",
    "aten.cumsum",
    "aten.cumsum_",
    "aten.cumprod",
    "aten.cumprod_",
    "aten.cummax",
    "aten.cummin",
    "aten._cummax_helper",
    "aten._cummin_helper",
    "aten.trace",
    "aten.equal",
    "aten.allclose",
    "aten.histc",
    "aten.bincount",
    "aten._is_all_true",
    "aten._is_any_true",
    "aten.segment_reduce",
    "aten.hash_tensor",
)
def reduce(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=elements(args[0]))


@FAMILY.counts("aten.max", "aten.min")
def extreme(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Of a tensor, or of two tensors element by element."""
    return Count(vector=max(elements(args[0]), elements(out)))


@FAMILY.counts("aten.aminmax", "aten._aminmax")
def both_extremes(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=2 * args[0].numel())


@FAMILY.counts(
    "aten.linalg_vector_norm",
    "aten.norm",
    "aten.native_norm",
    "aten.dist",
    "aten.linalg__powsum",
    "aten.frobenius_norm",
)
def norm(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Square and add."""
    return Count(vector=2 * args[0].numel())


@FAMILY.counts("aten.var", "aten.std", "aten.var_mean", "aten.std_mean")
def variance(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Mean, deviation, square and add."""
    return Count(vector=4 * args[0].numel())


@FAMILY.counts("aten.logsumexp", "aten.logcumsumexp", "aten._logcumsumexp")
def log_sum_exp(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Maximum, subtract, exponential, add."""
    return Count(vector=4 * args[0].numel())


@FAMILY.counts(
    "aten.sort",
    "aten.argsort",
    "aten.msort",
    "aten.median",
    "aten.nanmedian",
    "aten.mode",
)
def ordered(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    numbers = [item for item in args[1:] if type(item) is int]
    return _sorted_along(args[0], numbers[0] if numbers else kwargs.get("dim", -1))


@FAMILY.counts("aten.topk", "aten.kthvalue")
def largest(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    dimension = pick(args, kwargs, 2, "dim")
    return _sorted_along(args[0], -1 if dimension is None else dimension)


def _sorted_along(given: Tensor, dimension: int) -> Count:
    return _sorting(given, given.shape[dimension] if given.dim() else 1)


@FAMILY.counts(
    "aten._unique",
    "aten._unique2",
    "aten.unique_dim",
    "aten.unique_consecutive",
    "aten.unique_dim_consecutive",
)
def distinct(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _sorting(args[0], args[0].numel())


def _sorting(given: Tensor, length: int) -> Count:
    return Count(vector=given.numel() * ceil(log2(max(length, 2))))


@FAMILY.counts("aten.searchsorted", "aten.bucketize")
def search(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A binary search for each value."""
    borders = args[1] if isinstance(args[1], Tensor) else args[0]
    sizes = [item.shape[-1] for item in args[:2] if isinstance(item, Tensor) and item.dim()]
    length = min(sizes, default=borders.numel())
    return Count(vector=elements(out) * ceil(log2(max(length, 2))))


@FAMILY.counts("aten.histogram", "aten._histogramdd_from_bin_cts")
def histogram(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=2 * args[0].numel())


@FAMILY.counts("aten.nonzero", "aten.nonzero_static")
def nonzero(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A test and a running sum."""
    return Count(vector=2 * args[0].numel())


@FAMILY.counts("aten._segment_reduce_backward")
def segment_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=elements(pick(args, kwargs, 2, "data")))


FAMILY.example(
    lambda: torch.empty(4, 8, device="meta").sum(dim=-1),
    vector=32,
    read=128,
    written=16,
    why="32 additions; 32 numbers in, 4 out",
)
FAMILY.example(
    lambda: torch.topk(torch.empty(4, 8, device="meta"), 2),
    vector=4 * 8 * 3,
    written=4 * 2 * (4 + 8),
    why="32 elements x log2 8; 8 values of 4 bytes and 8 indices of 8 bytes",
)
FAMILY.example(
    lambda: torch.empty(10, device="meta").var(),
    vector=40,
    why="10 elements x (mean, deviation, square, add)",
)
