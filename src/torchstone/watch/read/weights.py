"""Which parameters are not what they were, by samples of their values."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ULPS = 8  # two interpolations, there and back, with a margin


def differing(now: Any, then: Any) -> Any:
    """Parameters of which a sampled value is another than it was."""
    if now is None or then is None:
        return None
    if now is then:  # the rule
        return _none_of(len(now))
    return (now.view(np.uint32) != then.view(np.uint32)).any(axis=1)


def changed(now: Any, then: Any, precision: NDArray[np.float64]) -> Any:
    """Parameters of which a sampled value is another than it was, by more than rounding.

    An optimizer that swaps weights for evaluation and computes them back is off by rounding.
    """
    found = differing(now, then)
    if found is None or not found.any():
        return found
    rows = np.flatnonzero(found)
    allowed = _ULPS * precision[rows] * np.abs(then[rows]).max(axis=1)
    with np.errstate(all="ignore"):
        within = np.abs(now[rows] - then[rows]) <= allowed[:, None]
    found[rows] = ~within.all(axis=1)
    return found


@functools.cache
def _none_of(count: int) -> Any:
    return np.broadcast_to(np.False_, (count,))  # all share it, and it cannot be written to
