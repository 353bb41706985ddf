"""Fourier transforms: 5 N log2 N per transform of N points, half of it when one side is real."""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from math import log2
from typing import Any

import torch
from torch import Tensor

from torchstone.cost.counters import Count, Family

FAMILY = Family("fft")

PER_POINT = 5


def transform_flops(signal: Tensor, dimensions: Any) -> int:
    """Real operations of complex transforms along these dimensions of the full signal."""
    points = signal.numel()
    lengths = [signal.shape[dimension] for dimension in dimensions]
    return round(PER_POINT * points * sum(log2(length) for length in lengths if length > 1))


@FAMILY.counts("aten._fft_c2c")
def complex_to_complex(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=transform_flops(args[0], args[1]))


@FAMILY.counts("aten._fft_r2c")
def real_to_complex(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=transform_flops(args[0], args[1]) // 2)


@FAMILY.counts("aten._fft_c2r")
def complex_to_real(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=transform_flops(out, args[1]) // 2)


FAMILY.example(
    lambda: torch.fft.fft(torch.empty(3, 8, dtype=torch.complex64, device="meta")),
    vector=360,
    why="3 transforms x 5 x 8 points x log2 8",
)
FAMILY.example(
    lambda: torch.fft.rfft(torch.empty(3, 8, device="meta")),
    vector=180,
    why="real input: half of 3 x 5 x 8 x 3",
)
FAMILY.example(
    lambda: torch.fft.fft2(torch.empty(4, 8, dtype=torch.complex64, device="meta")),
    vector=5 * 32 * (2 + 3),
    why="5 x 32 points x (log2 4 + log2 8)",
)
