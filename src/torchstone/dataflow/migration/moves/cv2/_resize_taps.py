"""The pixels and weights that cv2.resize uses for every place of an axis, in OpenCV's precision."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


def positions(count: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The pixel below and the fraction, in the precision of OpenCV."""
    exact = ((np.arange(count) + 0.5) * scale - 0.5).astype(np.float32)
    below = np.floor(exact)
    return below.astype(np.int64), exact - below.astype(np.float32)


def linear_weights(fraction: np.ndarray) -> np.ndarray:
    return np.stack([np.float32(1) - fraction, fraction])


def cubic_weights(x: np.ndarray) -> np.ndarray:
    a = np.float32(-0.75)
    one = np.float32(1)
    w0 = ((a * (x + one) - np.float32(5) * a) * (x + one) + np.float32(8) * a) * (
        x + one
    ) - np.float32(4) * a
    w1 = ((a + np.float32(2)) * x - (a + np.float32(3))) * x * x + one
    y = one - x
    w2 = ((a + np.float32(2)) * y - (a + np.float32(3))) * y * y + one
    return np.stack([w0, w1, w2, one - w0 - w1 - w2])


def lanczos_weights(x: np.ndarray) -> np.ndarray:
    s45 = 0.70710678118654752440084436210485
    turns = [(1, 0), (-s45, -s45), (0, 1), (s45, -s45), (-1, 0), (s45, s45), (0, -1), (-s45, s45)]
    y0 = -(x.astype(np.float64) + 3) * math.pi * 0.25
    s0, c0 = np.sin(y0), np.cos(y0)
    weights = []
    for i, (s, c) in enumerate(turns):
        y = -(x.astype(np.float64) + 3 - i) * math.pi * 0.25
        with np.errstate(divide="ignore", invalid="ignore"):
            weights.append(((s * s0 + c * c0) / (y * y)).astype(np.float32))
    stacked = np.stack(weights)
    total = stacked.sum(0, dtype=np.float32)
    stacked = stacked * (np.float32(1) / total)
    exact = x < 1.1920929e-07
    stacked[:, exact] = 0
    stacked[3, exact] = 1
    made: np.ndarray = stacked.astype(np.float32)
    return made


def taps(
    size: int, count: int, scale: float, weigh: Callable[[np.ndarray], np.ndarray], keep: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Indices and weights, (taps, count). Rows keep the fraction at the border, columns do not."""
    below, fraction = positions(count, scale)
    if weigh is linear_weights and not keep:
        outside = (below < 0) | (below >= size - 1)
        fraction = np.where(outside, np.float32(0), fraction)
        below = below.clip(0, size - 1)
    weights = weigh(fraction)
    first = -(len(weights) // 2 - 1)
    return np.stack([below + first + i for i in range(len(weights))]).clip(0, size - 1), weights
