"""Rules of peers, written from their published definitions: loss and gradient norm in, alarm out."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from statistics import fmean, pstdev

Rule = Callable[[float, float], bool]


def seed_rule() -> Rule:
    """A frozen baseline from 100 steps, 3 sigma or twice the range."""
    first: list[float] = []

    def alarm(_: float, norm: float) -> bool:
        if not math.isfinite(norm):
            return len(first) == 100
        if len(first) < 100:
            first.append(norm)
            return False
        mean, std = fmean(first), pstdev(first)
        return abs(norm - mean) > 3 * std or norm > 2 * max(first) or norm < min(first) / 2

    return alarm


def zclip() -> Rule:
    """Exponential mean and variance (0.97), z above 2.5, the clipped value fed back."""
    warm: list[float] = []
    state: list[float] = []

    def alarm(_: float, norm: float) -> bool:
        if not math.isfinite(norm):
            return len(warm) == 25
        if len(warm) < 25:
            warm.append(norm)
            if len(warm) == 25:
                state[:] = [fmean(warm), pstdev(warm) ** 2]
            return False
        mean, variance = state
        z = (norm - mean) / (math.sqrt(variance) + 1e-6)
        value = mean + 2.5 * math.sqrt(variance) if z > 2.5 else norm
        state[0] = 0.97 * mean + 0.03 * value
        state[1] = 0.97 * variance + 0.03 * (value - state[0]) ** 2
        return z > 2.5

    return alarm


def olmo_core() -> Rule:
    """Loss or gradient norm more than 6 standard deviations above the mean of the last 128."""
    past: tuple[deque[float], deque[float]] = (deque(maxlen=128), deque(maxlen=128))

    def alarm(loss: float, norm: float) -> bool:
        found = False
        for value, window in zip((loss, norm), past, strict=True):
            if len(window) >= 64:
                mean, std = fmean(window), pstdev(window)
                found |= value - mean > 6 * std
            if math.isfinite(value):
                window.append(value)
        return found

    return alarm


def nan_check() -> Rule:
    """A loss or a gradient norm that is not finite."""
    return lambda loss, norm: not (math.isfinite(loss) and math.isfinite(norm))


PEERS: dict[str, Callable[[], Rule]] = {
    "the seed's rule": seed_rule,
    "ZClip": zclip,
    "OLMo-core": olmo_core,
    "NaN check": nan_check,
}
