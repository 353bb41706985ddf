"""Inputs larger than the problem's own: new values of the same kind along a side.

A kernel that walks over blocks is right by luck where one block holds the whole side. New numbers
lie between numbers of the problem that stand on the same line, so that they keep their range and
their scale; what is sorted stays sorted, a permutation stays one, a mask keeps its outline.
"""

from __future__ import annotations

import torch

from torchstone.kernels.harness.inputs import lines
from torchstone.kernels.harness.inputs.value_families import Group, arrays, tensor_of
from torchstone.kernels.harness.reference.running import Values, leaves_of, like, rebuilt

USUAL_BLOCK = 1024
"""Blocks of kernels are rarely larger: a side beyond it has a second one."""
LONG_ELEMENTS = 1 << 20
HEAVY = 4096
"""So many products of eight-bit numbers have a sum beyond what single precision counts."""
APART = -2
"""The group of cases that wait for no step of their size: they show what no other size does."""
BLOCK = 128
"""Whole blocks: what vectors and tiles divide."""
BLOCK_ELEMENTS = 1 << 17
BLOCK_TURNS = 2
WALKED_APART = 3
"""How far apart lengths are along a side on which the reference walks."""
MOST_LENGTHS = 200
"""With more sizes each of them gets fewer lengths."""
FEW_LENGTHS = (41, 7, 49, 24, 61)
"""For an interpreter: lengths whose rounded reciprocal times themselves is less than one, others."""
STEPS = 3
"""At most so many sizes to grow to."""
_SHARE = 0.125
"""How far a new number lies from one of the problem's own on the way to another."""


def larger_sizes(size: int) -> tuple[int, ...]:
    """Sizes to grow to: over twice, over three times, over what a usual block holds."""
    sizes = (2 * size + 1, prime_above(3 * size), prime_above(USUAL_BLOCK))
    return tuple(value for i, value in enumerate(sizes) if i < 2 or value > sizes[1])


def prime_above(number: int) -> int:
    """The smallest odd prime above a number."""
    value = max(number + 1, 3) | 1
    while any(value % part == 0 for part in range(3, int(value**0.5) + 1, 2)):
        value += 2
    return value


def grown(
    inputs: Values, group: Group, size: int, seed: int, own: Values | None = None
) -> list[Values]:
    """Versions of the inputs with a group of sizes grown; the first that is taken is used.

    In the first one places reach into what is new, in the second they stay where they were. What
    may be a place is seen in the problem's `own` inputs: where another side was cut, all is small.
    """
    generator = torch.Generator().manual_seed(3000 + seed)
    near, far = leaves_of(inputs), leaves_of(inputs)
    first = near if own is None else leaves_of(own)
    placed = {i for i in arrays(inputs) if _may_be_places(tensor_of(first[i]), group.size)}
    moved = False
    for i in arrays(inputs):
        tensor = tensor_of(near[i])
        for leaf, dim in group.places:
            if leaf == i:
                tensor = _longer(tensor, dim, size, generator)
        spread = _spread(tensor, group.size, size, generator) if i in placed else tensor
        moved |= spread is not tensor
        near[i], far[i] = (like(near[i], item.contiguous()) for item in (tensor, spread))
    made = [list(rebuilt(inputs, leaves)) for leaves in (far, near)]
    return made if moved else made[1:]


def ramped(inputs: Values, group: Group, turn: int) -> Values:
    """One array with half of its lines along a side of the group slow ramps.

    What is kept from block to block then changes by little, which chance hardly ever shows. The
    other arrays stay as they are: among values that are all alike no wrong weight is seen.
    """
    leaves = leaves_of(inputs)
    sides = {
        i: dim for i, dim in reversed(group.places)
        if tensor_of(leaves[i]).is_floating_point() and not _is_ordered(tensor_of(leaves[i]), dim)
    }  # fmt: skip
    if sides:
        i = sorted(sides)[turn % len(sides)]
        shaped = lines.ramped(tensor_of(leaves[i]), sides[i], turn)
        leaves[i] = like(leaves[i], shaped.contiguous())
    return list(rebuilt(inputs, leaves))


def held(inputs: Values, group: Group) -> list[Values]:
    """One array after the other whose lines along the side hold one value: one, nearly one, none.

    A factor of one keeps everything that came before it, and among equals the first is the first
    of the whole line. What is sorted stays as it is.
    """
    leaves, found = leaves_of(inputs), []
    for i, dim in dict(reversed(group.places)).items():
        tensor = tensor_of(leaves[i])
        if tensor.is_floating_point() and not _is_ordered(tensor, dim):
            made = leaves_of(inputs)
            made[i] = like(made[i], lines.held(tensor, dim).contiguous())
            found.append((i, list(rebuilt(inputs, made))))
    return [made for _, made in sorted(found, key=lambda item: item[0])]


def elements_after(inputs: Values, group: Group, size: int) -> int:
    """How many elements the inputs would have."""
    leaves, total = leaves_of(inputs), 0
    for i in arrays(inputs):
        sides = sum(1 for leaf, _ in group.places if leaf == i)
        total += tensor_of(leaves[i]).numel() * size**sides // group.size**sides
    return total


def _longer(tensor: torch.Tensor, dim: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """One side grown."""
    if tensor.dtype == torch.bool:
        return tensor.index_select(dim, torch.arange(size) * tensor.shape[dim] // size)
    ordered = _is_ordered(tensor, dim)
    if not ordered and _is_permutation(tensor, dim):
        shape = [*tensor.shape[:dim], size, *tensor.shape[dim + 1 :]]
        return torch.rand(shape, generator=generator).argsort(dim=dim).to(tensor.dtype)
    new = _resampled(tensor, dim, size, generator)
    if tensor.is_floating_point():
        other = _resampled(tensor, dim, size, generator).double()
        share = torch.rand(new.shape, generator=generator, dtype=torch.float64) * _SHARE
        new = (new.double() * (1 - share) + other * share).to(tensor.dtype)
    return new.sort(dim=dim).values if ordered else new


def _resampled(
    tensor: torch.Tensor, dim: int, size: int, generator: torch.Generator
) -> torch.Tensor:
    """Every new element is one of its own line."""
    shape = [*tensor.shape[:dim], size, *tensor.shape[dim + 1 :]]
    places = torch.randint(0, tensor.shape[dim], shape, generator=generator)
    return tensor.gather(dim, places)


def _is_ordered(tensor: torch.Tensor, dim: int) -> bool:
    """No line ever falls."""
    steps = tensor.shape[dim] - 1
    if steps < 1 or tensor.is_complex():
        return False
    return bool((tensor.narrow(dim, 1, steps) >= tensor.narrow(dim, 0, steps)).all())


def _is_permutation(tensor: torch.Tensor, dim: int) -> bool:
    """Every line holds every place of its side once."""
    if tensor.is_floating_point() or tensor.is_complex():
        return False
    every = torch.arange(tensor.shape[dim]).to(tensor.dtype)
    shape = [-1 if i == dim else 1 for i in range(tensor.dim())]
    return bool((tensor.sort(dim=dim).values == every.reshape(shape)).all())


def _may_be_places(tensor: torch.Tensor, size: int) -> bool:
    """Whole numbers of a side of this size; those of its first half are more likely their own."""
    whole = tensor.dtype in (torch.int16, torch.int32, torch.int64)
    if not whole or not tensor.numel():
        return False
    return int(tensor.min()) >= 0 and size // 2 <= int(tensor.max()) < size


def _spread(tensor: torch.Tensor, old: int, new: int, generator: torch.Generator) -> torch.Tensor:
    """Places of the grown side reach into all of it."""
    if not _may_be_places(tensor, old):
        return tensor
    shift = torch.randint(0, new // old, tensor.shape, generator=generator) * old
    return torch.where(tensor + shift < new, tensor + shift, tensor).to(tensor.dtype)
