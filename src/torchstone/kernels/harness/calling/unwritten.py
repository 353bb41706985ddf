"""Memory that was never written: filled with a NaN that no computation makes, and known by its bits."""

from __future__ import annotations

import ctypes
import sys

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


def leaves_a_trace(dtype: torch.dtype) -> bool:
    """Whether elements of this format that were never written are known by their bits."""
    return dtype in _PATTERNS


def never_written(tensor: torch.Tensor) -> torch.Tensor:
    """Where the pattern still stands."""
    if tensor.dtype not in _PATTERNS or not tensor.numel():
        return torch.zeros(tensor.shape, dtype=torch.bool)
    bits, pattern = _PATTERNS[tensor.dtype]
    return tensor.contiguous().view(bits) == pattern


_M_PERTURB = -6
_FREED = 0x80
"""Memory from malloc holds the complement of this byte, 0x7f: 3 · 10³⁸ as a float, true as a truth,
outside of every array as a place. Large memory would hold zeros, by luck."""


def fill_new_memory() -> None:
    """Memory that code takes from malloc holds no zeros from now on, where the C library can do it."""
    setting = getattr(ctypes.CDLL(None), "mallopt", None)
    if setting is not None and sys.platform.startswith("linux"):
        setting(_M_PERTURB, _FREED)
