"""Storing a matrix in a format and reading it back: scale, round, unscale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from torchstone.runtime.number_formats import E4M3, IntegerFormat
from torchstone.tensors.formats._format import Element, Format
from torchstone.tensors.formats._granularity import Tiles, cut
from torchstone.tensors.formats._rounding import round_to_format

SCALES = ("none", "amax", "pow2", "floor", "rceil", "two-level")
"""`none` casts as it is; `amax` maps the largest value of a tile to the largest number; `pow2` is the
power of two below that; `floor` and `rceil` are the power-of-two scales of the OCP MX formats;
`two-level` is an e4m3 scale per block under one fp32 scale of the tensor (nvfp4)."""
_E8M0 = (-127, 127)  # exponents that an MX scale can hold
_NORMAL = 2.0**-126  # below it fp32 itself loses bits, and a scale would overflow


@dataclass(frozen=True, slots=True)
class Quantized:
    """A matrix after a round trip through a format."""

    values: torch.Tensor
    """As read back."""
    stored: torch.Tensor
    """As stored, in the units of the element."""
    scaled: torch.Tensor
    """What was rounded: the values in units of the element, before rounding."""


def quantize(
    matrix: torch.Tensor,
    format: Format,
    granularity: str | None = None,
    scale: str | None = None,
    tensor_largest: float | None = None,
) -> Quantized:
    """A matrix of fp32 (or fp64) values through a format and back.

    `tensor_largest` is the largest magnitude of the whole tensor where the matrix is a part of it.
    """
    tiles = cut(matrix, granularity or format.granularity)
    mode = scale or format.scale
    if mode == "none":
        stored = round_to_format(matrix, format.element, format.saturates)
        return Quantized(stored, stored, matrix)
    largest = tiles.largest()
    whole = float(largest.max()) if largest.numel() else 0.0
    whole = whole if tensor_largest is None else tensor_largest
    if (granularity or format.granularity) == "tensor":
        largest = torch.full_like(largest, whole)
    multiplier, unit = _scale_of(mode, largest, format.element, whole)
    scaled = _spread_nonfinite(tiles, tiles.values * multiplier, mode)
    stored = round_to_format(scaled, format.element, saturate=True)
    stored = torch.where(scaled.isinf(), scaled, stored)  # no scale makes an infinity finite
    return Quantized(tiles.joined(stored * unit), tiles.joined(stored), tiles.joined(scaled))


def _spread_nonfinite(tiles: Tiles, scaled: torch.Tensor, mode: str) -> torch.Tensor:
    """A NaN makes its whole MX block NaN: the shared scale has no other way to say it."""
    if mode not in ("floor", "rceil"):
        return scaled
    broken = tiles.values.isnan().any(dim=3, keepdim=True).any(dim=1, keepdim=True)
    return torch.where(broken, torch.nan, scaled)


def _scale_of(
    mode: str, largest: torch.Tensor, element: Element, whole: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """What values are multiplied with before rounding, and what stored values are worth."""
    if mode == "two-level":
        return _two_level(largest, element.largest, whole)
    size = largest.clamp(min=smallest_scaled(element))
    if mode == "amax":
        unit = size / element.largest
        return (1.0 / unit) if isinstance(element, IntegerFormat) else element.largest / size, unit
    exponent = _exponent(mode, size, element).clamp(*_E8M0)
    one = torch.ones_like(size)
    return torch.ldexp(one, -exponent), torch.ldexp(one, exponent)


def smallest_scaled(element: Element) -> float:
    """A tile of smaller magnitude is not scaled up further: unit and multiplier stay normal numbers."""
    return element.largest * _NORMAL


def _exponent(mode: str, size: torch.Tensor, element: Element) -> torch.Tensor:
    if mode == "floor":
        top = math.frexp(element.largest)[1] - 1
        return torch.frexp(size).exponent - 1 - top
    # the smallest power of two that brings the tile within the range
    mantissa, exponent = torch.frexp(size / element.largest)
    return exponent - (mantissa == 0.5).to(exponent.dtype)


def _two_level(
    largest: torch.Tensor, top: float, whole: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """nvfp4: block scale in e4m3, relative to one scale of the tensor."""
    outer = torch.tensor(whole, dtype=largest.dtype) / (E4M3.largest * top)
    outer = outer if float(outer) > 0 else torch.ones((), dtype=largest.dtype)
    inner = (largest / top / outer).clamp(E4M3.smallest_normal, E4M3.largest)
    unit = round_to_format(inner, E4M3, saturate=True) * outer
    return 1.0 / unit, unit
