"""The first operator at which two runs of one module come apart where they must not."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torchstone.conductor.probes.harvest.operators import Operator

TOLERANCE = 1e-4
"""Relative; far above float32 rounding of reordered sums, far below any real dependence."""


def difference(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest difference relative to the largest value."""
    if a.shape != b.shape or not a.numel():
        return 0.0 if a.shape == b.shape else float("inf")
    a, b = a.detach().double(), b.detach().double()
    finite = torch.isfinite(a) & torch.isfinite(b)
    same = torch.isfinite(a) == torch.isfinite(b)
    if not bool(same.all()):
        return float("inf")
    if not bool(finite.any()):
        return 0.0
    scale = float(a[finite].abs().max())
    return float((a - b)[finite].abs().max()) / (scale or 1.0)


def first_difference(
    before: list[Operator],
    after: list[Operator],
    part: Callable[[torch.Tensor], torch.Tensor | None],
) -> Operator | None:
    """The first operator whose outputs differ in the part that must stay; None: it cannot be told."""
    for one, other in zip(before, after, strict=False):
        if one.name != other.name or one.place != other.place:
            return None
        for a, b in zip(one.outputs, other.outputs, strict=False):
            if not a.is_floating_point() or a.shape != b.shape:
                continue
            left, right = part(a), part(b)
            if left is not None and right is not None and difference(left, right) > TOLERANCE:
                return one
    return None
