"""The exponential of one array plus another array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Model:
    """exp(x) + y, element by element."""

    def __call__(self, x: Array, y: Array) -> Array:
        return np.exp(x) + y


def get_inputs() -> list[Array]:
    shape = (31, 70)
    return [np.random.randn(*shape).astype(np.float32) for _ in range(2)]


def get_init_inputs() -> list[object]:
    return []
