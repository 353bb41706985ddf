"""Lines with a shape: slow ramps, zeros of both signs, sums that cancel, and lines of infinities.

What goes wrong only when a running maximum hardly grows, when equal elements differ in a sign that
counts for nothing, or when a whole row is masked, is not met by chance. Every line of one array
gets another shape, so that one call shows many of them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from torchstone.kernels.harness.inputs.value_families import (
    Poison,
    changed,
    is_float,
    size_of,
    tensor_of,
)
from torchstone.kernels.harness.reference.running import Values, leaves_of

Shape = Callable[[torch.Tensor, float], torch.Tensor]
RAMPS = (0.05, 0.003)
"""How far a slow ramp goes, in typical sizes: a running maximum that grows by little."""
_SHORTEST = 3
_MATRIX = 3
"""From so many sides on, the last one belongs to a line: keys of attention are vectors."""
INFINITY = float("inf")


def sides(inputs: Values) -> list[tuple[int, int]]:
    """Arrays and the sides along which their lines run, the likeliest reductions first."""
    leaves = leaves_of(inputs)
    found = []
    for i, leaf in enumerate(leaves):
        if not is_float(leaf):
            continue
        shape = tensor_of(leaf).shape
        order = [dim for dim in reversed(range(len(shape))) if shape[dim] >= _SHORTEST]
        found += [(turn, i, dim) for turn, dim in enumerate(order)]
    return [(leaf, dim) for _, leaf, dim in sorted(found)]


def lined(inputs: Values, turn: int) -> list[Values]:
    """Versions of the inputs with the lines of one array shaped, the first that fits is taken."""
    known = sides(inputs)
    if not known:
        return []
    leaf, dim = known[turn % len(known)]

    def shaped(shapes: tuple[Shape, ...]) -> Values:
        start = turn * 3 % len(shapes)
        given = shapes[start:] + shapes[:start]
        return changed(inputs, lambda x, _: shape_lines(x, dim, given), {leaf})

    # a square takes nothing far, a logarithm or a quotient no zeros: then without them
    return [shaped((*SHAPES, _far)), shaped(SHAPES), shaped(_AWAY_FROM_ZERO)]


def numbers_of_lines(x: torch.Tensor, dim: int) -> torch.Tensor:
    """For every element the number of its line, whatever its place on it."""
    kept = [i for i in range(x.dim()) if i != dim and not (x.dim() >= _MATRIX and i == x.dim() - 1)]
    if x.dim() >= _MATRIX and dim == x.dim() - 1:
        kept = list(range(x.dim() - 1))
    numbers = torch.zeros([1] * x.dim(), dtype=torch.int64)
    for side in kept:
        along = torch.arange(x.shape[side]).reshape(
            [-1 if i == side else 1 for i in range(x.dim())]
        )
        numbers = numbers * x.shape[side] + along
    return numbers.expand(x.shape)


def shape_lines(x: torch.Tensor, dim: int, shapes: tuple[Shape, ...]) -> torch.Tensor:
    """The lines along a side, each in the shape whose turn it is."""
    if not x.numel():
        return x
    wide = x.double()
    size = size_of(wide) or 1.0
    numbers = numbers_of_lines(x, dim) % len(shapes)
    moved = wide.movedim(dim, -1)
    found = wide.clone()
    for number, shape in enumerate(shapes):
        mine = numbers == number
        if bool(mine.any()):
            found = torch.where(mine, shape(moved, size).movedim(-1, dim), found)
    return found


def _places(x: torch.Tensor) -> torch.Tensor:
    """The place of every element on its line, from 0 to 1."""
    length = x.shape[-1]
    return (torch.arange(length, dtype=torch.float64) / max(length - 1, 1)).expand(x.shape)


def ramp(rise: float) -> Shape:
    """From a little below the typical size, a slow rise or fall by so many typical sizes."""
    return lambda x, size: size * (0.7 + rise * _places(x))


def zigzag(rise: float) -> Shape:
    """A slow rise over the first third, then a slow fall as far below the start.

    A maximum that is kept while walking grows somewhere, whatever sign the line is taken with.
    """

    def shape(x: torch.Tensor, size: float) -> torch.Tensor:
        at = _places(x)
        return size * (0.7 + rise * torch.minimum(3 * at, 2 - 3 * at))

    return shape


def _zeros_above(x: torch.Tensor, _: float) -> torch.Tensor:
    """All below zero but two zeros, the first of them with a minus."""
    return _put(-x.abs() - 1e-3, {1 / 3: -0.0, 2 / 3: 0.0})


def _zeros_below(x: torch.Tensor, _: float) -> torch.Tensor:
    """All above zero but two zeros, the second of them with a minus."""
    return _put(x.abs() + 1e-3, {1 / 3: 0.0, 2 / 3: -0.0})


def _zeros(x: torch.Tensor, _: float) -> torch.Tensor:
    """Zeros of either sign in turns, first one with a minus."""
    even = torch.arange(x.shape[-1]) % 2 == 0
    return torch.where(even, -0.0, 0.0).double().expand(x.shape)


def _cancelling(x: torch.Tensor, size: float) -> torch.Tensor:
    """Large numbers of either sign in turns, whose sum is as small as the numbers themselves."""
    signs = 1.0 - 2.0 * (torch.arange(x.shape[-1]) % 2).double()
    return x + 64 * size * signs


def _constant(x: torch.Tensor, size: float) -> torch.Tensor:
    return torch.full_like(x, size)


def _subnormal(x: torch.Tensor, size: float) -> torch.Tensor:
    """So small that single precision has only some of its bits left."""
    return x / size * 1e-40


def _far(x: torch.Tensor, size: float) -> torch.Tensor:
    """So far below zero that every finite floor is above them."""
    return -(x.abs() / size + 1) * 1e34


def _put(x: torch.Tensor, values: dict[float, float]) -> torch.Tensor:
    x = x.clone()
    for share, value in values.items():
        x[..., int(share * (x.shape[-1] - 1) + 0.5)] = value
    return x


SHAPES: tuple[Shape, ...] = (
    ramp(RAMPS[0]), _zeros_above, ramp(-RAMPS[1]), _zeros, _cancelling, _zeros_below, ramp(RAMPS[1]),
    _constant, _subnormal,
)  # fmt: skip
_AWAY_FROM_ZERO: tuple[Shape, ...] = (
    ramp(RAMPS[0]), ramp(-RAMPS[1]), _constant, ramp(RAMPS[1]), ramp(-RAMPS[0]),
)  # fmt: skip


def ramped(x: torch.Tensor, dim: int, turn: int) -> torch.Tensor:
    """Half of the lines rise and fall slowly; the others stay as they are."""

    def stay(moved: torch.Tensor, _: float) -> torch.Tensor:
        return moved

    slow, slower = RAMPS if turn % 2 == 0 else RAMPS[::-1]
    return shape_lines(x, dim, (zigzag(slow), zigzag(-slower), stay, stay)).to(x.dtype)


def held(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Every line holds one value: one, nearly one, nothing, less than nothing.

    All of few bits: the sum of a line is exact, whatever the order in which it is taken.
    """

    def constant(value: float) -> Shape:
        return lambda moved, _: torch.full_like(moved, value)

    nearly = 1 - 0.5 ** x.shape[dim].bit_length()
    return shape_lines(x, dim, tuple(map(constant, (1.0, nearly, 0.0, -1.0)))).to(x.dtype)


# what stands where on a line of infinities: place on it from 0 to 1 -> is it infinite
_MASKS: tuple[tuple[str, float], ...] = (
    ("all", -INFINITY), ("all but one", -INFINITY), ("one", INFINITY), ("all but the last", -INFINITY),
    ("first half", -INFINITY), ("none", 0.0), ("all", INFINITY), ("second half", -INFINITY),
)  # fmt: skip


def masked(inputs: Values, turn: int) -> tuple[Values, Poison] | None:
    """The inputs with whole lines of one array infinite, or all but one of their elements."""
    known = sides(inputs)
    if not known:
        return None
    leaf, dim = known[turn % len(known)]
    x = tensor_of(leaves_of(inputs)[leaf])
    numbers = (numbers_of_lines(x, dim) + turn * 3) % len(_MASKS)
    values = torch.zeros(x.shape, dtype=torch.float64)
    for number, (which, value) in enumerate(_MASKS):
        where = _masked_places(x.shape[dim], which)
        along = where.reshape([-1 if i == dim else 1 for i in range(x.dim())]).expand(x.shape)
        values = torch.where((numbers == number) & along, value, values)
    flat = values.reshape(-1)
    places = torch.isinf(flat).nonzero()[:, 0]
    if not places.numel():
        return None
    poison = Poison(leaf, places, flat[places])
    return poison.put(inputs, poison.values), poison


def _masked_places(length: int, which: str) -> torch.Tensor:
    at = torch.arange(length)
    return {
        "all": at >= 0, "none": at < 0, "all but one": at != length // 2, "one": at == length // 3,
        "all but the last": at < length - 1, "first half": at < length // 2,
        "second half": at >= length // 2,
    }[which]  # fmt: skip
