"""Every row is divided by its root mean square, then weighted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Model:
    """x / sqrt(mean(x * x) + epsilon) * weight over the last axis."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def __call__(self, x: Array, weight: Array) -> Array:
        square = np.mean(x * x, axis=-1, keepdims=True, dtype=x.dtype)
        root = np.sqrt(square + x.dtype.type(self.epsilon))
        scaled: Array = x / root * weight
        return scaled


def get_inputs() -> list[Array]:
    width = 88
    rows = np.random.randn(29, width).astype(np.float32)
    return [rows * 3, np.random.randn(width).astype(np.float32)]


def get_init_inputs() -> list[object]:
    return [1e-6]
