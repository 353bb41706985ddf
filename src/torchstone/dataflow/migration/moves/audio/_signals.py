"""What entries for audio share."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchstone.dataflow.migration.specification import Refusal, refuse

ROUNDING = {"float32": 5e-6, "float64": 1e-13}
"""Another Fourier transform rounds otherwise; relative to the largest value."""


def not_a_signal(value: Any, dimensions: tuple[int, ...] = (1, 2)) -> Refusal | None:
    if not isinstance(value, np.ndarray) or str(value.dtype) not in ROUNDING:
        kind = getattr(value, "dtype", type(value).__name__)
        return refuse(
            f"{kind} values",
            f"{kind} 数据",
            "convert to float32 before the call",
            "请在调用前转换为 float32",
        )
    if value.ndim not in dimensions or not value.size:
        return refuse(f"an array of shape {value.shape}", f"数组形状为 {value.shape}")
    return None


def rounding(*signals: Any) -> float:
    return max(ROUNDING[str(signal.dtype)] for signal in signals)


def random_signal(rng: np.random.Generator, length: int, dtype: str | None = None) -> np.ndarray:
    """Tones and noise."""
    at = np.arange(length)
    wave = np.sin(at * rng.uniform(0.01, 1.0)) + 0.3 * rng.standard_normal(length)
    made: np.ndarray = wave.astype(dtype or str(rng.choice(["float32", "float64"])))
    return made
