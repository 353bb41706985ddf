"""Memory that was never written: filled with a NaN that no computation makes, and known by its bits."""

from __future__ import annotations

import torch

_PATTERNS: dict[torch.dtype, tuple[torch.dtype, int]] = {
    torch.float64: (torch.int64, 0x7FF8_5EED_0000_A55A),
    torch.float32: (torch.int32, 0x7FC5_EED1),
    torch.float16: (torch.int16, 0x7E5D),
    torch.bfloat16: (torch.int16, 0x7FDE),
}
"""Quiet NaNs with a payload: kernels that make a NaN give one without, or that of an input."""


def fill_as_unwritten(whole: torch.Tensor) -> bool:
    """Put the pattern everywhere; False for a format that has none."""
    if whole.dtype not in _PATTERNS:
        return False
    bits, pattern = _PATTERNS[whole.dtype]
    whole.view(bits).fill_(pattern)
    return True


def never_written(tensor: torch.Tensor) -> torch.Tensor:
    """Where the pattern still stands."""
    if tensor.dtype not in _PATTERNS or not tensor.numel():
        return torch.zeros(tensor.shape, dtype=torch.bool)
    bits, pattern = _PATTERNS[tensor.dtype]
    return tensor.contiguous().view(bits) == pattern
