"""Where the values of an answer come from: a kernel wrote them, from inputs that nobody computed.

One call says which values a launch was given, two calls on other numbers say how they came there:
what was only moved has, in both, the value of one and the same place of an input or of what a kernel
wrote. What was computed on the way does not, whoever computed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness.reference.running import as_tensor, leaves_of
from torchstone.kernels.messages.to_referee import OriginFacts

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


def pairs_of(one: torch.Tensor, two: torch.Tensor) -> Values:
    """The distinct pairs of values at the same place of two tensors, and of their casts."""
    if one.is_complex():
        one, two = torch.view_as_real(one.resolve_conj()), torch.view_as_real(two.resolve_conj())
    found = [_paired(one, two)]
    if one.is_floating_point():
        found += [_paired(one.to(kind), two.to(kind)) for kind in _CASTS]
        found.append(_paired(one.double().trunc(), two.double().trunc()))
        if (bits := _BITS.get(one.element_size())) is not None:
            found.append(_paired(one.contiguous().view(bits), two.contiguous().view(bits)))
    return np.unique(np.concatenate(found))


_BITS = {2: torch.int16, 4: torch.int32}
"""Formats of numbers are also handed over by their bits, as bfloat16 is to C."""
_NOT_FINITE = 2.0**1000
"""Stands for what equals nothing, itself included."""


def _paired(one: torch.Tensor, two: torch.Tensor) -> Values:
    parts = [
        np.nan_to_num(item.double().reshape(-1).numpy(), nan=_NOT_FINITE) for item in (one, two)
    ]
    return np.unique(parts[0] + 1j * parts[1])


def depending(one: torch.Tensor, two: torch.Tensor, known: Values) -> int:
    """How many distinct values follow the inputs, and are at no place of what is known."""
    own = _paired(one, two)
    own = own[own.real != own.imag]
    return int((~np.isin(own, known)).sum())


Given = list[tuple[int, torch.Tensor]]
"""What a launch was given: its place among the arguments, -1 for a plain number, and what it held."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What one launch was given, and what its memory held afterwards."""

    before: Given
    after: list[torch.Tensor]


def find_computed(
    inputs: Sequence[tuple[torch.Tensor, torch.Tensor]],
    launches: Sequence[tuple[Launch, Launch]],
    most: int,
) -> OriginFacts | None:
    """The first launch that was given what follows the inputs and was not moved from them.

    Of plain numbers a call may have `MOST_FOREIGN`, because so many elements may be read.
    """
    known = np.unique(np.concatenate([np.zeros(1, complex), *(pairs_of(*pair) for pair in inputs)]))
    numbers = 0
    for number, (one, two) in enumerate(launches):
        for (place, mine), (_, other) in zip(one.before, two.before, strict=True):
            count = depending(mine, other, known)
            numbers += count if place < 0 else 0
            if (place >= 0 and count > most) or numbers > MOST_FOREIGN:
                values = max(count, numbers)
                return OriginFacts(number, values=values, place=place, computed=True)
        made = [pairs_of(*pair) for pair in zip(one.after, two.after, strict=True)]
        known = np.unique(np.concatenate([known, *made]))
    return None


def find_unexplained(
    given: Sequence[torch.Tensor],
    launches: Sequence[Launch],
    answer: object,
) -> OriginFacts | None:
    """The first launch that was given computed values, or an output that no kernel wrote."""
    known = values_of(given)
    written = np.zeros(1)
    for number, launch in enumerate(launches):
        for place, tensor in launch.before:
            if not is_index(tensor) and (count := foreign(tensor, known)) > MOST_FOREIGN:
                return OriginFacts(number, values=count, place=place)
        made = values_of(launch.after)
        known, written = np.union1d(known, made), np.union1d(written, made)
    for number, leaf in enumerate(leaves_of(answer)):
        found = as_tensor(leaf)
        if found is None or found.dtype == torch.bool:
            continue
        if count := foreign(found, written):
            return OriginFacts(output=number, values=count)
    return None
