"""Families of inputs, made from a problem's own: other values, other layouts, other sizes.

Sizes change only together where they are equal in the problem, and only where the reference
accepts them. Smaller ones are cut here; larger ones are made in `growing`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from torchstone.kernels.harness.inputs.strides import expanded_side
from torchstone.kernels.harness.reference.running import Values, as_tensor, leaves_of, like, rebuilt

LARGER, LENGTHS, SLENDER, GRADED = "larger", "lengths", "slender", "graded"
VALUES = ("scalars", "truths", "negative", "large", "tiny", "zeros", "ties", "one-hot", "lines", GRADED, "ladder",
          "extreme", "repeated", "nan", "inf", "masked", "strided",
          "unaligned", "expanded", "shared")  # fmt: skip
OTHER_MEMORY = ("unaligned", "expanded", "shared")
"""Families whose values follow from the way in which they lie in memory."""
SMALLER = ("prime", "power", "equal", "one", "empty")
LONGER = (LARGER, LENGTHS, SLENDER)
"""Families in which more numbers may meet in one output than in the problem's own."""
ALONE = (*LONGER, GRADED)
"""Families of very different sizes: the reference's error in one case excuses no other."""
CALM = ("lines", GRADED, "ladder")
"""Families without the cases in which the reference itself is far off."""
FEWEST = {"negative": 2, "tiny": 2, "zeros": 2, "ties": 2, "one-hot": 2, GRADED: 2, "ladder": 1,
          "repeated": 1, "power": 2, "unaligned": 1, "expanded": 1, "shared": 1}  # fmt: skip
"""Cases of a family that are enough for a costly kernel, where others have more."""
TINY = (1e-3, 1e-6, 1e-2, 1e-8, 1e-4)
LARGE = (1e4, 1e3, 1e2, 1e1)
SMALLEST_GROUP = 5
"""Smaller sizes are taken for part of the problem: channels of an image, taps of a filter."""

_OTHER_NUMBERS = ((1.5, 1), (-1.0, -1), (0.5, 2), (0.0, 3))
"""A factor for floating-point numbers, which may be negative and small, and a step for whole ones."""

Change = Callable[[torch.Tensor, int], torch.Tensor]


def is_float(leaf: object) -> bool:
    """An array of floating-point numbers."""
    return hasattr(leaf, "dtype") and hasattr(leaf, "shape") and tensor_of(leaf).is_floating_point()


def tensor_of(leaf: object) -> torch.Tensor:
    """An array as a tensor."""
    tensor = as_tensor(leaf)
    assert tensor is not None
    return tensor


def arrays(inputs: Values) -> list[int]:
    """Which leaves are arrays."""
    leaves = leaves_of(inputs)
    return [
        i for i, leaf in enumerate(leaves) if hasattr(leaf, "dtype") and as_tensor(leaf) is not None
    ]


def shapes_of(inputs: Values) -> list[tuple[int, ...]]:
    """The shape of every array among the inputs."""
    arrays = [item for item in map(as_tensor, leaves_of(inputs)) if item is not None]
    return [tuple(item.shape) for item in arrays]


def changed(inputs: Values, change: Change, chosen: set[int] | None = None) -> Values:
    """The inputs with some of the floating arrays (all by default) changed."""
    leaves = leaves_of(inputs)
    for i, leaf in enumerate(leaves):
        if is_float(leaf) and (chosen is None or i in chosen):
            tensor = tensor_of(leaf)
            leaves[i] = like(leaf, change(tensor, i).to(tensor.dtype))
    return list(rebuilt(inputs, leaves))


def valued(inputs: Values, family: str, seed: int) -> list[Values]:
    """Versions of the inputs in a family of values, the first that fits is taken."""
    floats = [i for i, leaf in enumerate(leaves_of(inputs)) if is_float(leaf)]
    if not floats:
        return []
    one = {floats[seed % len(floats)]}
    generator = torch.Generator().manual_seed(1000 + seed)
    if family == "negative":
        if seed % 2 == 0:
            return [changed(inputs, lambda x, _: -x.abs())]
        return [changed(inputs, lambda x, _: x.abs() * _signs(x, generator))]
    if family == "large":
        if seed % 5 == 1:  # all of them far below zero
            return [changed(inputs, _lowered(factor)) for factor in LARGE]
        chosen = None if seed % 5 in (0, 3) else one
        return [changed(inputs, _scaled(factor), chosen) for factor in LARGE]
    if family == "tiny":
        return [changed(inputs, _scaled(TINY[seed % len(TINY)]))]
    if family == "zeros":
        return [changed(inputs, lambda x, _: torch.zeros_like(x), None if seed == 0 else one)]
    if family == "ties":
        return [changed(inputs, _tied)]
    if family == "one-hot":
        return [
            changed(inputs, lambda x, _: _one_hot(x, generator), None if seed % 2 == 0 else one)
        ]
    return [inputs]


def other_numbers(inputs: Values, turn: int) -> list[Values]:
    """Plain numbers and truths among the inputs get other values: a kernel may not take one for
    a constant."""
    leaves = leaves_of(inputs)
    chosen = [i for i, leaf in enumerate(leaves) if type(leaf) in (int, float, bool)]
    if not chosen:
        return []
    truths = [i for i in chosen if type(leaves[i]) is bool]
    # all at once, then one after the other: a branch may be taken only when another is not
    turned = [truths, truths[turn % len(truths) :][:1]] * 2 if truths else [[]] * 4
    made = []
    for (factor, step), flipped in zip(_OTHER_NUMBERS, turned, strict=True):
        changed_leaves = list(leaves)
        for i in chosen:
            leaf = leaves[i]
            if type(leaf) is bool:
                changed_leaves[i] = leaf != (i in flipped)
            elif isinstance(leaf, float):
                changed_leaves[i] = leaf * factor + 0.125 * (turn + 1)
            elif isinstance(leaf, int):
                changed_leaves[i] = leaf + step
        made.append(list(rebuilt(inputs, changed_leaves)))
    return made[turn % len(made) :] + made[: turn % len(made)]


def other_truths(inputs: Values, turn: int) -> list[Values]:
    """Arrays of truths that are all true, all false, the other way round, or in halves."""
    leaves = leaves_of(inputs)
    chosen = [i for i in arrays(inputs) if tensor_of(leaves[i]).dtype == torch.bool]
    if not chosen:
        return []
    for i in chosen:
        old = tensor_of(leaves[i])
        line = torch.arange(old.shape[-1] if old.dim() else 1) < (old.shape[-1:] or (1,))[0] // 2
        ways = (torch.ones_like(old), torch.zeros_like(old), ~old, line.expand_as(old).clone())
        leaves[i] = like(leaves[i], ways[turn % len(ways)])
    return [list(rebuilt(inputs, leaves))]


def remembered(inputs: Values, family: str, turn: int) -> list[Values]:
    """The inputs as they may lie in memory of another kind; none where they cannot."""
    if family == "unaligned":
        # never zero, as far as that is the problem's choice: what is not written shows
        return [changed(inputs, lambda x, _: x.double().abs() + size_of(x) / 4), inputs][turn % 2 :]
    leaves = leaves_of(inputs)
    known: dict[str, int] = {}
    moved = False
    for i in arrays(inputs):
        tensor = tensor_of(leaves[i])
        if family == "shared":
            first = known.setdefault(repr((tensor.shape, tensor.dtype)), i)
            moved |= first != i
            leaves[i] = leaves[first]
        elif tensor.dim() and tensor.is_floating_point():
            dim = expanded_side(tensor.shape, turn)
            repeats = tensor.shape[dim] > 1
            moved |= repeats
            if repeats:
                tensor = tensor.narrow(dim, 0, 1).expand(tensor.shape).contiguous()
            leaves[i] = like(leaves[i], tensor)
    return [list(rebuilt(inputs, leaves))] if moved else []


def _scaled(factor: float) -> Change:
    return lambda x, _: x.double() * factor


def _lowered(factor: float) -> Change:
    def lower(x: torch.Tensor, _: int) -> torch.Tensor:
        x = x.double()
        return -(x.abs() + size_of(x)) * factor

    return lower


def size_of(x: torch.Tensor) -> float:
    """The typical size of the elements."""
    return float(x.double().square().mean().sqrt()) if x.numel() else 0.0


def _signs(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.where(torch.rand(x.shape, generator=generator) < 0.5, -1.0, 1.0).to(x.dtype)


def _tied(x: torch.Tensor, _: int) -> torch.Tensor:
    """Multiples of half of the typical size, taken to a power of two: sums stay exact."""
    if not x.numel():
        return x
    size = size_of(x) or 1.0
    step = 2.0 ** round(torch.tensor(size).log2().item()) / 2
    return (x.double() / step).round().clamp(-3, 3) * step


def _one_hot(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    found = torch.zeros_like(x)
    if x.numel():
        places = torch.randint(0, x.numel(), (max(1, x.numel() // 64),), generator=generator)
        found.reshape(-1)[places] = 1.0
    return found


@dataclass(frozen=True, slots=True)
class Poison:
    """Where a NaN or an infinity was put."""

    leaf: int
    places: torch.Tensor
    values: torch.Tensor
    """What was put at every one of the places."""

    def put(self, inputs: Values, values: torch.Tensor) -> Values:
        """The inputs with these values at the places."""

        def change(x: torch.Tensor, _: int) -> torch.Tensor:
            x = x.clone().contiguous()
            x.reshape(-1)[self.places] = values.to(x.dtype)
            return x

        return changed(inputs, change, {self.leaf})

    def finite(self, turn: int) -> torch.Tensor:
        """Ordinary numbers to put there instead: what depends on the places changes with them."""
        generator = torch.Generator().manual_seed(turn)
        noise = torch.randn(self.places.shape, generator=generator, dtype=torch.float64)
        return noise + (0.5, 9.0, -9.0)[turn % 3]


def poisoned(inputs: Values, family: str, seed: int) -> tuple[Values, Poison] | None:
    """The inputs with NaN or an infinity at a few places of one array."""
    floats = [i for i, leaf in enumerate(leaves_of(inputs)) if is_float(leaf)]
    sizes = {i: tensor_of(leaves_of(inputs)[i]).numel() for i in floats}
    floats = [i for i in floats if sizes[i]]
    if not floats:
        return None
    which = floats[seed % len(floats)]
    generator = torch.Generator().manual_seed(2000 + seed)
    count = min(3, sizes[which])
    places = torch.randperm(sizes[which], generator=generator)[:count]
    value = float("nan") if family == "nan" else (float("inf"), float("-inf"))[seed % 2]
    poison = Poison(which, places, torch.full(places.shape, value, dtype=torch.float64))
    return poison.put(inputs, poison.values), poison


@dataclass(frozen=True, slots=True)
class Group:
    """Sizes that are equal in the problem and therefore change together."""

    size: int
    places: tuple[tuple[int, int], ...]


def groups_of(inputs: Values) -> list[Group]:
    """The groups that may change: large enough, or the leading size of the first array."""
    leaves = leaves_of(inputs)
    found: dict[int, list[tuple[int, int]]] = {}
    for i in arrays(inputs):
        for dim, size in enumerate(tensor_of(leaves[i]).shape):
            found.setdefault(size, []).append((i, dim))
    first = arrays(inputs)[:1]
    leading = (first[0], 0) if first else None
    return [
        Group(size, tuple(places))
        for size, places in found.items()
        if size >= SMALLEST_GROUP or (size > 1 and places == [leading])
    ]


def resized(inputs: Values, group: Group, size: int, start: int = 0) -> Values:
    """The inputs cut to another size; whole numbers that may be places stay inside."""
    leaves = leaves_of(inputs)
    for i in arrays(inputs):
        tensor = known = tensor_of(leaves[i])
        for leaf, dim in group.places:
            if leaf == i:
                tensor = tensor.narrow(dim, start, min(size, tensor.shape[dim]))
        if (
            not tensor.is_floating_point()
            and tensor.dtype != torch.bool
            and tensor.numel()
            and size
        ):
            top = int(tensor.max())
            if size <= top < group.size and int(tensor.min()) >= 0:
                tensor = tensor % size
        if tensor is not known:
            leaves[i] = like(leaves[i], tensor.clone(memory_format=torch.contiguous_format))
    return list(rebuilt(inputs, leaves))


def power_below(number: int) -> int:
    """The largest power of two below a number."""
    return 1 << max(number - 1, 1).bit_length() - 1


def prime_below(number: int) -> int:
    """The largest prime below a number; 1 when there is none."""
    for value in range(number - 1, 1, -1):
        if all(value % part for part in range(2, int(value**0.5) + 1)):
            return value
    return 1


def exchanged(x: torch.Tensor, _: int) -> torch.Tensor:
    """The largest and the smallest inner element change places: ends, sum and size stay."""
    flat = x.clone().contiguous().reshape(-1)
    inner = flat[1:-1]
    if inner.numel() > 1:
        high, low = int(inner.argmax()) + 1, int(inner.argmin()) + 1
        flat[[high, low]] = flat[[low, high]]
    return flat.reshape(x.shape)
