"""Rounding to the nearest number of a format, ties to even, for any element."""

from __future__ import annotations

import torch

from torchstone.runtime.number_formats import FORMATS, IntegerFormat, NumberFormat, dtype_of
from torchstone.tensors.formats._format import Element

_EXACT_CASTS = frozenset({"fp16", "bf16", "e5m2", "e4m3"})
"""Casts of torch from fp32 that equal ml_dtypes in every bit within the range."""


def round_to_format(values: torch.Tensor, element: Element, saturate: bool) -> torch.Tensor:
    """The values as the format would hold them, in the type they came in (fp32 or fp64).

    What lies beyond the range becomes the largest number with `saturate`, else infinite; infinities
    become the largest with `saturate` too. NaN stays NaN.
    """
    if isinstance(element, IntegerFormat):
        return values.round().clamp(-element.largest, element.largest)
    if values.dtype == torch.float32 and element.name in _EXACT_CASTS:
        rounded = _cast(values, element)
    else:
        rounded = _on_grid(values, element)
    return _limit(values, rounded, element, saturate)


def _cast(values: torch.Tensor, element: NumberFormat) -> torch.Tensor:
    """Through torch's own cast; what it does beyond the range is replaced by `_limit`."""
    inside = values.clamp(-element.largest, element.largest)
    return inside.to(dtype_of(FORMATS[element.name])).to(values.dtype)


def _on_grid(values: torch.Tensor, element: NumberFormat) -> torch.Tensor:
    """By arithmetic: the step of a value is a power of two, so dividing by it is exact.

    Done in fp64 from the given value, hence rounded once also where the input is fp64.
    """
    wide = values.double()
    finite = torch.where(wide.isfinite(), wide, 0.0)
    exponent = torch.frexp(finite).exponent - 1
    step_exponent = exponent.clamp(min=element.normal_exponent) - element.mantissa_bits
    step = torch.ldexp(torch.ones_like(wide), step_exponent)
    rounded = torch.round(finite / step) * step
    return torch.where(wide.isfinite(), rounded, wide).to(values.dtype)


def _limit(
    values: torch.Tensor, rounded: torch.Tensor, element: NumberFormat, saturate: bool
) -> torch.Tensor:
    """Beyond the range: the largest, or infinite."""
    if saturate:
        return rounded.clamp(-element.largest, element.largest)
    over = overflows(values, element)
    if not bool(over.any()):
        return rounded
    return torch.where(over, torch.copysign(torch.full_like(rounded, torch.inf), values), rounded)


def overflows(values: torch.Tensor, element: NumberFormat) -> torch.Tensor:
    """Which values round to no finite number of the format (infinities among them)."""
    size = values.abs()
    limit = element.overflow_from
    if values.dtype == torch.float32 and element.exponent_bits == 8:
        # the tie of fp32-sized formats is no number that fp32 compares exactly: compare in fp64
        size = size.double()
    return size >= limit if element.overflows_at_tie else size > limit
