"""What a router picks: real indices in the place of fake ones.

How many tokens go to which expert decides the split sizes of the next all_to_all. With real indices all
that is counted from them is computed and exchanged for real, and agrees between ranks where the
program is right. They are drawn from the number of the scores (how these were made), so that ranks
with the same scores pick the same, and unevenly, so that split sizes differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchstone.dryrun.session import is_fake
from torchstone.observe.compat.modes import DisableTorchFunction, disable_modes

MOST = 1 << 20
"""Indices that are made real: more are no routing."""
_ALONE = ("aten::argmax", "aten::argmin", "aten::multinomial")
_BESIDE = ("aten::topk", "aten::max", "aten::min")
"""Give the values too, as their first result."""


class Choices:
    """Replaces the indices in an operator's result."""

    def __init__(self, number_of: Callable[[torch.Tensor], int]) -> None:
        self._number_of = number_of

    def replace(self, func: Any, args: Any, result: Any) -> Any:
        name = func._schema.name
        if name in _ALONE and is_fake(result):
            return self._drawn(name, args, result)
        if name in _BESIDE and isinstance(result, (tuple, list)) and len(result) == 2:
            values, indices = result
            return values, self._drawn(name, args, indices)
        return result

    def _drawn(self, name: str, args: Any, indices: torch.Tensor) -> torch.Tensor:
        source = args[0]
        if indices.numel() > MOST or not source.numel():
            return indices
        axis, count, of = _axis(name, args, source, indices)
        rows = indices.numel() // max(1, count)
        with disable_modes(), DisableTorchFunction():
            seed = self._number_of(source) & 0x7FFFFFFFFFFFFFFF
            generator = torch.Generator().manual_seed(seed)
            first = (torch.rand(rows, 1, generator=generator) ** 2 * of).long()
            picked = (first + torch.arange(count)) % of  # as many as asked for, each once
            if axis is None:
                return picked.reshape(indices.shape)
            shape = [size for place, size in enumerate(indices.shape) if place != axis]
            return picked.reshape(*shape, count).movedim(-1, axis).contiguous()


def _axis(
    name: str, args: Any, source: torch.Tensor, indices: torch.Tensor
) -> tuple[int | None, int, int]:
    """The axis of the result along which indices differ, how many there are, and of how many."""
    if name == "aten::multinomial":
        return indices.dim() - 1, indices.shape[-1], source.shape[-1]
    if name == "aten::topk":
        axis = (args[2] if len(args) > 2 else -1) % max(1, source.dim())
        return axis, indices.shape[axis], source.shape[axis]
    axis = args[1] if len(args) > 1 else None
    return None, 1, source.numel() if axis is None else source.shape[axis]
