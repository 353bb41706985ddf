"""Answers that were given and are kept: later calls must leave them, and their memory, alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import torch

from torchstone.kernels.harness.calling import monitor
from torchstone.kernels.harness.reference.running import Values, as_tensor
from torchstone.kernels.harness.values import raw_bytes
from torchstone.observe.compat.arrays import byte_bounds

MOST_ANSWERS = 24
"""A ring of fewer buffers comes around while its first answer is still kept."""
MOST_BYTES = 2 << 20

Span = tuple[int, int]


def digest_of(leaf: object) -> str:
    """What the elements of a leaf are, in few letters; empty for a plain number."""
    if isinstance(leaf, bool | int | float | complex):
        return ""
    tensor = as_tensor(monitor.plain(leaf))
    return hashlib.sha256(raw_bytes(tensor)).hexdigest() if tensor is not None else ""


def span_of(leaf: object) -> Span:
    """Addresses that a leaf reaches; (0, 0) for a plain number."""
    if isinstance(leaf, np.ndarray):
        low, high = byte_bounds(leaf)
        return (int(low), int(high)) if leaf.size else (0, 0)
    if not isinstance(leaf, torch.Tensor) or not leaf.numel():
        return 0, 0
    last = sum((n - 1) * s for n, s in zip(leaf.shape, leaf.stride(), strict=True))
    return leaf.data_ptr(), leaf.data_ptr() + (last + 1) * leaf.element_size()


def meet(one: Span, two: Span) -> bool:
    """Do two spans of addresses share one?"""
    return one[0] < two[1] and two[0] < one[1]


@dataclass(slots=True)
class Kept:
    """The last answers, with what they held: two dozen, as far as they are not large."""

    answers: list[tuple[Values, list[str]]] = field(default_factory=list)

    def add(self, leaves: Values) -> None:
        """Keep one more answer; the oldest go when there are too many."""
        self.answers.append((leaves, [digest_of(leaf) for leaf in leaves]))
        while len(self.answers) > 1 and (
            len(self.answers) > MOST_ANSWERS or self._size() > MOST_BYTES
        ):
            del self.answers[0]

    def _size(self) -> int:
        return sum(high - low for low, high in self.spans())

    def spans(self) -> list[Span]:
        """All memory that is kept."""
        return [span_of(leaf) for leaves, _ in self.answers for leaf in leaves]

    def changed(self) -> bool:
        """Has one of them become another since it was given?"""
        return any([digest_of(leaf) for leaf in leaves] != known for leaves, known in self.answers)
