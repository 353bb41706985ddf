"""A matrix times the transpose of another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Model:
    """a @ b.T, rows against rows."""

    def __call__(self, a: Array, b: Array) -> Array:
        return a @ b.T


def get_inputs() -> list[Array]:
    a = np.random.randn(45, 64).astype(np.float32)
    return [a, np.random.randn(38, 64).astype(np.float32)]


def get_init_inputs() -> list[object]:
    return []
