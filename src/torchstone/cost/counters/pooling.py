"""Pooling and resampling: one FLOP per position under the window, two per neighbour weighed."""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchstone.cost.counters import Count, Counter, Family
from torchstone.cost.counters._sizes import elements, pick, size_bytes, window

FAMILY = Family("pooling")

NEIGHBOURS = {
    "upsample_linear1d": 2,
    "upsample_bilinear2d": 4,
    "upsample_trilinear3d": 8,
    "upsample_bicubic2d": 16,
    "_upsample_bilinear2d_aa": 4,
    "_upsample_bicubic2d_aa": 16,
    "_upsample_lanczos2d_aa": 36,
}
"""Inputs that one output is made of (for the anti-aliased forms, when nothing shrinks)."""

_NEAREST = [
    f"{prefix}{dimensions}d"
    for prefix in ("upsample_nearest", "_upsample_nearest_exact")
    for dimensions in (1, 2, 3)
]


@FAMILY.counts(
    "aten.max_pool2d_with_indices",
    "aten.max_pool3d_with_indices",
    "aten.max_pool1d",
    "aten.max_pool2d",
    "aten.max_pool3d",
    "aten.avg_pool1d",
    "aten.avg_pool2d",
    "aten.avg_pool3d",
    "aten.mkldnn_max_pool2d",
    "aten.mkldnn_max_pool3d",
    "aten.fractional_max_pool2d",
    "aten.fractional_max_pool3d",
)
def pool(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    first = out[0] if isinstance(out, (list, tuple)) else out
    kernel = pick(args, kwargs, 1, "kernel_size")
    dimensions = len(kernel) if isinstance(kernel, (list, tuple)) and len(kernel) > 1 else 0
    return Count(vector=first.numel() * window(kernel, dimensions or first.dim() - 2))


@FAMILY.counts(
    "aten.max_pool2d_with_indices_backward",
    "aten.max_pool3d_with_indices_backward",
    "aten.max_pool2d_backward",
    "aten.mkldnn_max_pool2d_backward",
    "aten.mkldnn_max_pool3d_backward",
    "aten.fractional_max_pool2d_backward",
    "aten.fractional_max_pool3d_backward",
    "aten.adaptive_max_pool2d_backward",
    "aten.adaptive_max_pool3d_backward",
)
def max_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Each gradient goes to one place, told by its index."""
    indices = [item for item in args[2:] if isinstance(item, Tensor)]
    return Count(vector=args[0].numel(), read=size_bytes([args[0], indices]))


@FAMILY.counts("aten.avg_pool2d_backward", "aten.avg_pool3d_backward")
def average_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    kernel = pick(args, kwargs, 2, "kernel_size")
    return Count(
        vector=args[0].numel() * window(kernel, args[1].dim() - 2), read=size_bytes(args[0])
    )


@FAMILY.counts(
    "aten._adaptive_avg_pool2d",
    "aten._adaptive_avg_pool3d",
    "aten.adaptive_avg_pool1d",
    "aten.adaptive_avg_pool2d",
    "aten.adaptive_avg_pool3d",
    "aten.mkldnn_adaptive_avg_pool2d",
    "aten.adaptive_max_pool1d",
    "aten.adaptive_max_pool2d",
    "aten.adaptive_max_pool3d",
)
def adaptive(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=args[0].numel())


@FAMILY.counts(
    "aten._adaptive_avg_pool2d_backward",
    "aten._adaptive_avg_pool3d_backward",
    "aten.adaptive_avg_pool3d_backward",
    "aten.mkldnn_adaptive_avg_pool2d_backward",
)
def adaptive_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=elements(out), read=size_bytes(args[0]))


@FAMILY.counts("aten.max_unpool2d", "aten.max_unpool3d")
def unpool(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count()


@FAMILY.counts(*(f"aten.{name}" for name in _NEAREST))
def nearest(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A copy."""
    return Count()


@FAMILY.counts(*(f"aten.{name}_backward" for name in _NEAREST))
def nearest_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=args[0].numel())


def _resampled(neighbours: int) -> Counter:
    def count(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
        return Count(vector=2 * neighbours * elements(out))

    return count


def _resampled_backward(neighbours: int) -> Counter:
    def count(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
        return Count(vector=2 * neighbours * args[0].numel())

    return count


for _name, _neighbours in NEIGHBOURS.items():
    FAMILY.counts(f"aten.{_name}")(_resampled(_neighbours))
    FAMILY.counts(f"aten.{_name}_backward")(_resampled_backward(_neighbours))


@FAMILY.counts(
    "aten.grid_sampler_2d", "aten.cudnn_grid_sampler", "aten._grid_sampler_2d_cpu_fallback"
)
def grid(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """Four neighbours of each output, and four operations per coordinate pair."""
    return Count(vector=8 * elements(out) + 2 * args[1].numel())


@FAMILY.counts("aten.grid_sampler_3d")
def grid_3d(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=16 * elements(out) + 2 * args[1].numel())


@FAMILY.counts(
    "aten.grid_sampler_2d_backward",
    "aten.grid_sampler_3d_backward",
    "aten.cudnn_grid_sampler_backward",
    "aten._grid_sampler_2d_cpu_fallback_backward",
)
def grid_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """To the input and to the grid."""
    grad = args[0] if args[0].numel() else args[2]
    return Count(vector=2 * (8 if grad.dim() == 4 else 16) * grad.numel())


@FAMILY.counts("aten.affine_grid_generator", "aten.cudnn_affine_grid_generator")
def affine_grid(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A product with a small matrix: 2 x outputs x (dimensions + 1)."""
    return Count(flops=2 * elements(out) * args[0].shape[-1])


def _meta(*shape: int) -> Tensor:
    return torch.empty(*shape, device="meta")


FAMILY.example(
    lambda: torch.nn.functional.max_pool2d(_meta(1, 2, 8, 8), 2),
    vector=2 * 4 * 4 * 4,
    why="32 outputs x 4 positions",
)
FAMILY.example(
    lambda: torch.nn.functional.interpolate(_meta(1, 2, 4, 4), scale_factor=2, mode="bilinear"),
    vector=2 * 8 * 8 * 8,
    why="128 outputs x 4 neighbours, multiplied and added",
)
FAMILY.example(
    lambda: torch.nn.functional.adaptive_avg_pool2d(_meta(1, 2, 8, 8), 2),
    vector=128,
    why="every input is added once",
)
