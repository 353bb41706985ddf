"""A glance at a tensor on the host: a few sums over values that are spread over it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from torchstone.watch.read.fused import load_fused

_FEWEST_ROWS = 8
HIGH = 1 << 40
"""Addresses below it are looked at again: that of a view of memory that was given away is low."""


class TensorSummary(NamedTuple):
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


def is_readable(tensor: Tensor) -> bool:
    """A tensor whose values are there to be read, as they are."""
    return (
        tensor.dtype == torch.float32 and tensor.is_cpu and tensor.numel() > 0
        and tensor.layout == torch.strided and not tensor.is_nested and not tensor.is_neg()
    )  # fmt: skip


def address_of(tensor: Tensor) -> int:
    """Where the values of a contiguous tensor lie; 0 where their memory was given away."""
    place = tensor.data_ptr()
    if place >= HIGH:
        return place
    end = (tensor.storage_offset() + tensor.numel()) * tensor.element_size()
    return place if tensor.untyped_storage().nbytes() >= end else 0


def summarise(tensor: Tensor, most: int) -> TensorSummary:
    """Look at about so many values; an odd distance meets every class of a power of two."""
    step = max(1, tensor.numel() // most) | 1
    return _look(tensor, -(-tensor.numel() // step), step, 1)


def summarise_rows(tensor: Tensor, most: int) -> TensorSummary:
    """Look at whole rows: the gradient of a loss over classes has most of its size in one value."""
    width = tensor.shape[-1] if tensor.dim() else 1
    rows = tensor.numel() // width
    distance = max(1, rows // max(most // width, _FEWEST_ROWS))
    return _look(tensor, -(-rows // distance), distance * width, width)


def _look(tensor: Tensor, pieces: int, distance: int, width: int) -> TensorSummary:
    fused = load_fused()
    if not isinstance(fused, str) and type(tensor) is Tensor and tensor.is_contiguous():
        if place := address_of(tensor):
            return TensorSummary(pieces * width, *fused.look(place, pieces, distance, width))
    flat = tensor.detach().reshape(-1).numpy()
    starts = np.arange(pieces)[:, None] * distance
    values = flat[starts + np.arange(width)]
    with np.errstate(all="ignore"):
        squares = float(np.square(values, dtype=np.float64).sum())
    zeros = values.size - int(np.count_nonzero(values))
    return TensorSummary(values.size, squares, zeros, int(np.count_nonzero(values < 0)))
