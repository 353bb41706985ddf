"""Number formats that checkpoints store as codes: which value each code stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class CodeKind:
    """A stored format. The limits are shares of the codes that a sound matrix stays below."""

    name: str
    bits: int
    values: NDArray[np.float64]
    """Of every code; NaN for codes that are not numbers."""
    most_zeros: float
    most_at_the_end: float
    least_db: float
    """Signal to quantisation noise beside the original: half of the decibels that a normal distribution
    has in this format."""
    has_zero_point: bool = False
    """Zero is another code in each group: the most frequent code stands for it."""

    @property
    def zero_codes(self) -> NDArray[np.bool_]:
        return np.asarray(self.values == 0)

    @property
    def end_codes(self) -> NDArray[np.bool_]:
        """The largest values there are; of a format with a zero point the first and the last code."""
        size = np.abs(self.values)
        found = size >= 0.99 * np.nanmax(size)  # -128 and 127 alike
        if self.has_zero_point:
            found = np.zeros(len(size), bool)
            found[[0, -1]] = True
        return np.asarray(found)


def _float8(dtype: torch.dtype) -> NDArray[np.float64]:
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)
    return np.where(np.isfinite(values := codes.to(torch.float64).numpy()), values, np.nan)


_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6.0])
_NF4 = np.array([
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
])  # fmt: skip
_INT8 = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.float64)

# Zeros: a scale that brings the largest value of a normal distribution to the end of the range leaves
# 1e-5 of them in e4m3, 2 % in int8, 7 % in e2m1 and nf4 with small blocks. Values at the end: one of
# each block is; the smallest blocks in use are 1 x 128 (fp8), a row (int8), 16 and 32 (e2m1), 64 (nf4).
E4M3 = CodeKind("fp8 e4m3", 8, _float8(torch.float8_e4m3fn), 0.01, 0.01, 16.0)
E5M2 = CodeKind("fp8 e5m2", 8, _float8(torch.float8_e5m2), 0.01, 0.01, 12.0)
INT8 = CodeKind("int8", 8, _INT8, 0.15, 0.02, 18.0)
MXFP4 = CodeKind("mxfp4", 4, _E2M1, 0.3, 0.3, 8.0)
NVFP4 = CodeKind("nvfp4", 4, _E2M1, 0.3, 0.3, 9.0)
NF4 = CodeKind("nf4", 4, _NF4, 0.3, 0.15, 9.0)
UINT4 = CodeKind("int4", 4, np.arange(16.0), 0.5, 0.3, 8.0, has_zero_point=True)
UINT8 = CodeKind(
    "int8 with zero points", 8, np.arange(256.0), 0.15, 0.05, 18.0, has_zero_point=True
)
UINT2 = CodeKind("int2", 2, np.arange(4.0), 0.9, 0.9, 2.0, has_zero_point=True)

FLOAT8 = {torch.float8_e4m3fn: E4M3, torch.float8_e5m2: E5M2}
BY_BITS = {2: UINT2, 4: UINT4, 8: UINT8}
"""Of GPTQ and AWQ."""


def count_codes(data: bytes, bits: int) -> NDArray[np.int64]:
    """How often each code of 8, 4 or 2 bits occurs."""
    whole = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
    size = 1 << bits
    counts = np.zeros(size, np.int64)
    codes = np.arange(256)
    for shift in range(0, 8, bits):
        np.add.at(counts, (codes >> shift) & (size - 1), whole)
    return counts
