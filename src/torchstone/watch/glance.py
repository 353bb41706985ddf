"""A glance at a tensor on the host: a few sums over values that are spread over it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchstone.watch.fused import load_fused


class Glance(NamedTuple):
    """What some values of a tensor show."""

    size: int
    """How many values were looked at."""
    squares: float
    """Their sum; may be infinite, or NaN."""
    zeros: int
    negative: int

    @property
    def scale(self) -> float:
        """Root mean square."""
        return math.sqrt(self.squares / self.size)


def can_be_seen(tensor: Tensor) -> bool:
    """A tensor whose values are there to be read, as they are."""
    return (
        tensor.dtype == torch.float32 and tensor.is_cpu and tensor.numel() > 0
        and tensor.layout == torch.strided and not tensor.is_nested
    )  # fmt: skip


def glance(tensor: Tensor, most: int) -> Glance:
    """Look at about so many values; an odd distance meets every class of a power of two."""
    size = tensor.numel()
    step = max(1, size // most) | 1
    fused = load_fused()
    if not isinstance(fused, str) and type(tensor) is Tensor and tensor.is_contiguous():
        if place := tensor.data_ptr():
            return Glance(-(-size // step), *fused.look(place, size, step))
    values = tensor.detach().reshape(-1).numpy()[::step]
    with np.errstate(all="ignore"):
        squares = float(np.square(values, dtype=np.float64).sum())
    zeros = len(values) - int(np.count_nonzero(values))
    return Glance(len(values), squares, zeros, int(np.count_nonzero(values < 0)))
