"""OpenCV's Gaussian kernels, to the bit."""

from __future__ import annotations

import math

import numpy as np

_SMALL = {
    1: [1.0],
    3: [0.25, 0.5, 0.25],
    5: [0.0625, 0.25, 0.375, 0.25, 0.0625],
    7: [0.03125, 0.109375, 0.21875, 0.28125, 0.21875, 0.109375, 0.03125],
    9: [4 / 256, 13 / 256, 30 / 256, 51 / 256, 60 / 256, 51 / 256, 30 / 256, 13 / 256, 4 / 256],
}


def gaussian_kernel(size: int, sigma: float) -> np.ndarray:
    """The weights in float64; small kernels without a sigma come from a table."""
    if sigma <= 0 and size in _SMALL:
        return np.array(_SMALL[size])
    wide = sigma if sigma > 0 else size * 0.15 + 0.35
    scale = -0.125 / (wide * wide)
    half = [math.exp(x * x * scale) for x in range(1 - size, 0, 2)]
    total = 2 * sum(half) + 1
    left = [value * (1 / total) for value in half]
    return np.array([*left, 1 / total, *reversed(left)])


def fixed_kernel(size: int, sigma: float, bits: int = 8) -> np.ndarray:
    """The weights in fixed point; what rounding loses goes to the next weight."""
    weights = gaussian_kernel(size, sigma)
    one = 1 << bits
    half, lost = [], 0.0
    for weight in weights[: size // 2]:
        wanted = float(weight) * one + lost
        taken = int(np.rint(wanted))
        lost = wanted - taken
        half.append(taken)
    return np.array([*half, one - 2 * sum(half), *reversed(half)], np.int32)


def size_for(sigma: float, is_uint8: bool) -> int:
    """The size of a kernel that is given by its sigma alone."""
    return int(np.rint(sigma * (3 if is_uint8 else 4) * 2 + 1)) | 1
