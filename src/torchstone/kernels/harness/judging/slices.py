"""Slices of a problem: rows of its inputs that alone give the same rows of its outputs.

Which side may be sliced is found by trying: the reference is run on three rows, and must give what it
gave for them among all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from torchstone.kernels.harness.reference.running import (
    Reference,
    Values,
    as_tensor,
    leaves_of,
    like,
    rebuilt,
)

_SAME = 1e-4
"""Of the largest value: rounding of another order of sums stays below, another meaning of a row does not."""
_FAILED = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, AssertionError,
           ArithmeticError, KeyError)  # fmt: skip
_EDGES = (16, 32, 64, 128, 256, 512, 1024, 1500, 2048, 4096)
"""Where tiles of kernels end, as a rule."""
_MOST_TRIED = 12
_MOST_TRIED_ELEMENTS = 1 << 26
"""Elements of inputs in a trial: larger ones would take as long as the whole."""


@dataclass(frozen=True, slots=True)
class Slicing:
    """Sides of inputs that are cut together, and the side of every output that follows them."""

    places: tuple[tuple[int, int], ...]
    sides: tuple[int, ...]
    count: int

    def of_inputs(self, inputs: Values, rows: list[int]) -> Values:
        """The inputs with these rows alone."""
        leaves = leaves_of(inputs)
        chosen = torch.tensor(rows)
        for leaf, dim in self.places:
            tensor = as_tensor(leaves[leaf])
            assert tensor is not None
            leaves[leaf] = like(leaves[leaf], tensor.index_select(dim, chosen))
        return list(rebuilt(inputs, leaves))

    def elements(self, inputs: Values) -> tuple[int, int]:
        """Elements of one row, and of all that is not sliced."""
        tensors = [as_tensor(leaf) for leaf in leaves_of(inputs)]
        sizes = [0 if item is None else item.numel() for item in tensors]
        cut = {leaf for leaf, _ in self.places}
        each = sum(size // self.count for i, size in enumerate(sizes) if i in cut)
        return each, sum(size for i, size in enumerate(sizes) if i not in cut)


def find_slicing(
    reference: Reference, inputs: Values, outputs: list[torch.Tensor]
) -> Slicing | None:
    """The first side that can be sliced; None where no side can."""
    for tried, slicing in enumerate(_possible(inputs, outputs)):
        if tried == _MOST_TRIED:
            return None
        each, rest = slicing.elements(inputs)
        if 3 * each + rest > _MOST_TRIED_ELEMENTS:
            continue
        rows = sorted({0, slicing.count // 2, slicing.count - 1})
        try:
            found = leaves_of(reference.run_once(slicing.of_inputs(inputs, rows)))
        except _FAILED:
            continue
        if _same_rows([as_tensor(leaf) for leaf in found], outputs, slicing, rows):
            return slicing
    return None


def _possible(inputs: Values, outputs: list[torch.Tensor]) -> Iterator[Slicing]:
    tensors = [as_tensor(leaf) for leaf in leaves_of(inputs)]
    first = outputs[0]
    for side, count in enumerate(first.shape):
        if count < 2 or any(item.dim() <= side or item.shape[side] != count for item in outputs):
            continue
        places = [
            (i, dim)
            for i, item in enumerate(tensors)
            if item is not None
            for dim, size in enumerate(item.shape)
            if size == count
        ]
        sides = (side,) * len(outputs)
        together = tuple(place for place in places if place[1] == side)
        tries = [together, *((place,) for place in places), tuple(places)]
        yield from (Slicing(item, sides, count) for item in dict.fromkeys(tries) if item)


def _same_rows(
    found: list[torch.Tensor | None], outputs: list[torch.Tensor], slicing: Slicing, rows: list[int]
) -> bool:
    if len(found) != len(outputs):
        return False
    for got, whole, side in zip(found, outputs, slicing.sides, strict=True):
        right = cut_output(whole, side, rows)
        if got is None or got.shape != right.shape:
            return False
        if not right.is_floating_point():
            if not torch.equal(got, right):
                return False
            continue
        size = float(right.abs().nan_to_num(posinf=0.0).max()) if right.numel() else 0.0
        if not torch.allclose(got, right, rtol=_SAME, atol=_SAME * size, equal_nan=True):
            return False
    return True


def cut_output(output: torch.Tensor, side: int, rows: list[int]) -> torch.Tensor:
    """These rows of an output."""
    return output.index_select(side, torch.tensor(rows))


def sampled_rows(count: int, most: int) -> list[int]:
    """First and last, next to the edges of tiles, and random ones; the most telling first."""
    edges = [place for edge in _EDGES if edge < count for place in (edge, edge - 1)]
    generator = torch.Generator().manual_seed(count)
    drawn = torch.randint(0, count, (most,), generator=generator).tolist()
    half = math.ceil(most / 2)
    wanted = [
        count - 1,
        0,
        count // 2,
        *drawn[: most // 4],
        *reversed(edges[-half:]),
        *drawn,
        *edges,
    ]
    return sorted(list(dict.fromkeys(wanted))[:most])
