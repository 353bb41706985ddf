"""Whole numbers: their extremes everywhere, and places that all name the same."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from torchstone.kernels.harness.inputs.lines import numbers_of_lines
from torchstone.kernels.harness.inputs.value_families import arrays, tensor_of
from torchstone.kernels.harness.reference.running import Values, leaves_of, like, rebuilt

Ranges = dict[int, tuple[int, int]]
"""For every array of whole numbers the least and the largest that the problem shows."""
_NEAR = 16
WAYS = 5
"""In how many ways whole numbers are extreme."""


def ranges_of(many: list[Values]) -> Ranges:
    """The ranges over several draws of a problem's inputs."""
    found: Ranges = {}
    for inputs in many:
        leaves = leaves_of(inputs)
        for i in arrays(inputs):
            tensor = tensor_of(leaves[i])
            if not is_whole(tensor) or not tensor.numel():
                continue
            low, high = found.get(i, (int(tensor.min()), int(tensor.max())))
            found[i] = (min(low, int(tensor.min())), max(high, int(tensor.max())))
    return found


def is_whole(tensor: torch.Tensor) -> bool:
    """Whole numbers, no truths."""
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def of_family(inputs: Values, family: str, seed: int, ranges: Ranges) -> list[Values]:
    """Without floating arrays: families of values from the range that the problem shows."""
    generator = torch.Generator().manual_seed(1000 + seed)
    leaves = leaves_of(inputs)
    for i in arrays(inputs):
        tensor = tensor_of(leaves[i])
        if i not in ranges or not tensor.numel():
            continue
        low, high = (torch.tensor(value, dtype=tensor.dtype) for value in ranges[i])
        if family == "large":
            pick = torch.rand(tensor.shape, generator=generator) < 0.5
            made = torch.where(pick, low, high)
        elif family == "zeros" and int(low) <= 0 <= int(high):
            made = torch.zeros_like(tensor)
        elif family == "negative" and int(low) < 0:
            made = torch.where(tensor > 0, torch.clamp(-tensor, low, high), tensor)
        elif family == "ties":
            made = torch.where(tensor > 0, high, low)
        elif family == "strided":
            made = tensor
        else:
            return []
        leaves[i] = like(leaves[i], made)
    return [list(rebuilt(inputs, leaves))]


def extreme(inputs: Values, ranges: Ranges, turn: int) -> Values:
    """Every whole number the least or the largest, so that sums grow as far as they can.

    All the least, all the largest, one array against the other, and line against line.
    """
    leaves = leaves_of(inputs)
    for number, i in enumerate(ranges):
        tensor = tensor_of(leaves[i])
        low, high = ranges[i]
        way = turn % WAYS
        if way == WAYS - 1 and tensor.dim():
            lines = torch.arange(tensor.shape[-1]).expand(tensor.shape) % 2 == number % 2
            made = torch.where(lines, low, high).to(tensor.dtype)
        else:
            value = (low, high)[(way >> 1 if number % 2 == 0 else way) & 1]
            made = torch.full_like(tensor, value)
        leaves[i] = like(leaves[i], made)
    return list(rebuilt(inputs, leaves))


def heavy(inputs: Values, ranges: Ranges, places: Sequence[tuple[int, int]]) -> Values:
    """Sums along a side as large as they get, and of no round number: one sign on every line.

    Equal numbers, even if they are the largest, add up to what a float holds exactly.
    """
    generator = torch.Generator().manual_seed(5000)
    leaves = leaves_of(inputs)
    for i, dim in places:
        if i not in ranges:
            continue
        tensor = tensor_of(leaves[i])
        low, high = ranges[i]
        share = max((high - low) // _NEAR, 1)
        near = torch.randint(0, share + 1, tensor.shape, generator=generator)
        ways = torch.stack(
            [high - near, low + near, *(torch.full_like(near, n) for n in ranges[i])]
        )
        made = ways.gather(0, (numbers_of_lines(tensor, dim) % len(ways)).unsqueeze(0))[0]
        leaves[i] = like(leaves[i], made.to(tensor.dtype))
    return list(rebuilt(inputs, leaves))


def repeated(inputs: Values, ranges: Ranges, turn: int) -> Values | None:
    """Places that all name the same one; those that never meet on a line still do not.

    None without places, or where they are sorted or a choice without repetition.
    """
    leaves, moved = leaves_of(inputs), False
    for i in ranges:
        tensor = tensor_of(leaves[i])
        made = _one_line(tensor, turn)
        moved |= made is not None
        leaves[i] = leaves[i] if made is None else like(leaves[i], made)
    return list(rebuilt(inputs, leaves)) if moved else None


def _one_line(tensor: torch.Tensor, turn: int) -> torch.Tensor | None:
    """The numbers of one place along every side on which numbers do repeat."""
    if not is_whole(tensor) or tensor.numel() < 2:
        return None
    flat = tensor.reshape(-1)
    if bool((flat.diff() >= 0).all()):
        return None
    made, moved = tensor, False
    for dim in range(tensor.dim()):
        lines = tensor.sort(dim=dim).values
        if tensor.shape[dim] > 1 and bool((lines.diff(dim=dim) == 0).any()):
            at = (0, -1, tensor.shape[dim] // 2)[turn % 3]
            made = made.select(dim, at).unsqueeze(dim).expand(made.shape)
            moved = True
    return made.contiguous().clone() if moved else None
