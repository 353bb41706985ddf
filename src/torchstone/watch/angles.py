"""Angles from products of sampled steps and gradients."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def angle_of(cosine: float) -> float:
    """In degrees; NaN where the cosine is none."""
    if not math.isfinite(cosine):
        return math.nan
    return math.degrees(math.acos(min(1.0, max(-1.0, cosine))))


def mean_angle(products: NDArray[np.float64], squares: NDArray[np.float64]) -> float:
    """The angle whose cosine is the mean over the layers that moved; NaN where none did."""
    there = squares > 0
    count = int(np.count_nonzero(there))
    if not count:
        return math.nan
    if count < len(squares):
        products, squares = products[there], squares[there]
    return angle_of(float(np.add.reduce(products / np.sqrt(squares))) / count)
