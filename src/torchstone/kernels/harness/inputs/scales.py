"""Numbers of very different size beside each other: blocks, lines, and ladders of magnitudes.

A product that is taken apart and put together again, a sum that is a difference of two others, or
a scale that is shared by a whole array is right while all numbers are of one size. Beside a block
that is a million times larger the small answers drown, and the bound, which is measured element by
element, does not grow with the block.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from torchstone.kernels.harness.inputs.value_families import (
    Change,
    changed,
    is_float,
    size_of,
    tensor_of,
)
from torchstone.kernels.harness.reference.running import Values, leaves_of

GRADES = (1e6, 1e4, 1e2)
"""How much larger a block is, the first at which the reference is finite and calm."""
REACHES = (20.0, 8.0, 3.0)
"""How far from zero the numbers of a ladder stand."""
_DECADES = 6

Blocks = Callable[[torch.Tensor], torch.Tensor]


def graded(inputs: Values, turn: int) -> list[Values]:
    """Versions of the inputs with a part of one array far larger than the rest."""
    floats = [
        i for i, leaf in enumerate(leaves_of(inputs)) if is_float(leaf) and tensor_of(leaf).dim()
    ]
    if not floats:
        return []
    again, which = divmod(turn, len(floats))
    return _larger_in(inputs, floats[which], _BLOCKS[(again + which) % len(_BLOCKS)])


def rising(inputs: Values, leaf: int) -> list[Values]:
    """Versions of the inputs with the second half of an array far larger: what a kernel takes from
    the first block of a line, such as its maximum, does not hold for the rest."""
    return _larger_in(inputs, leaf, _far_corner) if is_float(leaves_of(inputs)[leaf]) else []


def _larger_in(inputs: Values, leaf: int, blocks: Blocks) -> list[Values]:
    def grade(factor: float) -> Change:
        return lambda x, _: torch.where(blocks(x), x.double() * factor, x.double())

    return [changed(inputs, grade(factor), {leaf}) for factor in GRADES]


def ladder(inputs: Values, turn: int) -> list[Values]:
    """Versions of the inputs with one array on a ladder: even steps, and every power of ten.

    A formula that is right only near the problem's own numbers shows between its pieces.
    """
    floats = [i for i, leaf in enumerate(leaves_of(inputs)) if is_float(leaf)]
    generator = torch.Generator().manual_seed(4000 + turn)

    def climb(reach: float) -> Change:
        def change(x: torch.Tensor, _: int) -> torch.Tensor:
            even = torch.linspace(-reach, reach, x.numel(), dtype=torch.float64)
            decades = -_DECADES * torch.rand(x.numel(), generator=generator, dtype=torch.float64)
            signs = torch.where(torch.rand(x.numel(), generator=generator) < 0.5, -1.0, 1.0)
            steep = signs * size_of(x) * 10**decades
            mixed = torch.where(torch.rand(x.numel(), generator=generator) < 0.5, even, steep)
            return mixed[torch.randperm(x.numel(), generator=generator)].reshape(x.shape)

        return change

    chosen = {floats[turn % len(floats)]} if floats else set()
    return [changed(inputs, climb(reach), chosen) for reach in REACHES] if floats else []


def _corner(x: torch.Tensor) -> torch.Tensor:
    """The first half of every side."""
    inside = torch.ones(x.shape, dtype=torch.bool)
    for dim, size in enumerate(x.shape):
        inside &= _along(x, dim, torch.arange(size) < (size + 1) // 2)
    return inside


def _far_corner(x: torch.Tensor) -> torch.Tensor:
    """The second half of every side."""
    inside = torch.ones(x.shape, dtype=torch.bool)
    for dim, size in enumerate(x.shape):
        inside &= _along(x, dim, torch.arange(size) >= size // 2)
    return inside


def _lines(x: torch.Tensor) -> torch.Tensor:
    """Every third line along the last side."""
    dim = max(x.dim() - 2, 0)
    return _along(x, dim, torch.arange(x.shape[dim]) % 3 == 1)


def _columns(x: torch.Tensor) -> torch.Tensor:
    """Every third place on the last side."""
    return _along(x, x.dim() - 1, torch.arange(x.shape[-1]) % 3 == 1)


def _along(x: torch.Tensor, dim: int, chosen: torch.Tensor) -> torch.Tensor:
    return chosen.reshape([-1 if i == dim else 1 for i in range(x.dim())]).expand(x.shape)


_BLOCKS: tuple[Blocks, ...] = (_corner, _far_corner, _lines, _columns)
