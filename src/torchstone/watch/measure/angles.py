"""Angles from products of sampled steps and gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def angles_of(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """In degrees; NaN where a cosine is none."""
    cosines = np.where(np.isfinite(cosines), cosines, np.nan)
    return np.asarray(np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0))))


def mean_angles(products: NDArray[np.float64], squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """For every step the angle whose cosine is the mean over the layers that moved."""
    there = squares > 0
    cosines = np.where(there, products / np.sqrt(squares), 0.0)
    return angles_of(cosines.sum(axis=1) / there.sum(axis=1))
