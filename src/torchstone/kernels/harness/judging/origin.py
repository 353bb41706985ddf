"""Where the values of an answer come from: a kernel wrote them, from inputs that nobody computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.judging.reference import as_tensor, leaves_of

MOST_FOREIGN = 16
"""Distinct values that a launch may be given from elsewhere: a scale, a mask's value, an epsilon."""
_CASTS = (torch.float32, torch.float16, torch.bfloat16)
Values = np.ndarray[Any, Any]


def values_of(many: Iterable[torch.Tensor]) -> Values:
    """The distinct finite values of tensors, and of their casts to the usual formats."""
    parts = [np.zeros(1)]
    for item in many:
        if item.dtype == torch.bool or not item.numel():
            continue
        kinds = (item.dtype, *_CASTS) if item.is_floating_point() else (item.dtype, torch.float32)
        parts += [item.to(kind).double().reshape(-1).numpy() for kind in kinds]
    found = np.unique(np.concatenate(parts))
    return found[np.isfinite(found)]


def foreign(tensor: torch.Tensor, known: Values) -> int:
    """How many distinct values of a tensor are not known."""
    own = np.unique(tensor.double().reshape(-1).numpy())
    own = own[np.isfinite(own)]
    at = np.searchsorted(known, own).clip(max=len(known) - 1)
    return int((known[at] != own).sum()) if len(known) else len(own)


def is_index(tensor: torch.Tensor) -> bool:
    """Whole numbers: offsets, lengths, orders of places, which hosts make all the time."""
    return not tensor.is_floating_point() and not tensor.is_complex()


def unexplained(
    given: Sequence[torch.Tensor],
    launches: Sequence[tuple[list[torch.Tensor], list[torch.Tensor]]],
    answer: Any,
) -> dict[str, Any]:
    """The first launch that was given computed values, or an output that no kernel wrote.

    `launches` holds what each was given and what its memory held afterwards, in order.
    """
    known = values_of(given)
    written = np.zeros(1)
    for number, (before, after) in enumerate(launches):
        for tensor in before:
            if not is_index(tensor) and (count := foreign(tensor, known)) > MOST_FOREIGN:
                return {"launch": number, "values": count}
        made = values_of(after)
        known, written = np.union1d(known, made), np.union1d(written, made)
    for number, leaf in enumerate(leaves_of(answer)):
        found = as_tensor(leaf)
        if found is None or found.dtype == torch.bool:
            continue
        if count := foreign(found, written):
            return {"output": number, "values": count}
    return {}
