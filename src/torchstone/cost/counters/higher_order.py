"""Operators that take functions: counted by the shapes of their tensors.

Flexible attention is counted as full attention. What its block mask skips is `causal` where the
mask can be read; on meta tensors nothing is known of it. The score function costs one per pair.
Names are those of `torch.ops.higher_order`.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters.attention import Pairs, backward_count, forward_count

FAMILY = Family("higher_order")

SCORE_PER_PAIR = 1


def _pairs(query: Tensor, key: Tensor, block_mask: Any) -> Pairs:
    every = query.shape[:-1].numel() * key.shape[-2]
    seen = _seen(query, key, block_mask)
    return Pairs(every, 0 if seen is None else max(every - seen, 0))


def _seen(query: Tensor, key: Tensor, block_mask: Any) -> int | None:
    """Pairs inside the blocks that are computed, or None where that cannot be known. A block mask
    is (lengths, partial blocks per row, their indices, full blocks per row, …, block sizes)."""
    if not isinstance(block_mask, (list, tuple)) or len(block_mask) < 6:
        return None
    counts = [item for item in (block_mask[2], block_mask[4]) if isinstance(item, Tensor)]
    sizes = [item for item in block_mask if isinstance(item, int) and not isinstance(item, bool)]
    if not counts or len(sizes) < 2 or any(item.device.type == "meta" for item in counts):
        return None
    rows = counts[0].shape[-1]
    blocks = sum(int(item.sum()) for item in counts)
    copies = query.shape[:-2].numel() // max(counts[0].shape[:-1].numel(), 1)
    block = min(sizes[-2], -(-query.shape[-2] // rows)) * min(sizes[-1], key.shape[-2])
    return blocks * block * copies


@FAMILY.counts("flex_attention")
def flexible(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    query, key, value = args[:3]
    pairs = _pairs(query, key, args[4] if len(args) > 4 else None)
    count = forward_count(pairs, query.shape[-1], value.shape[-1])
    return count._replace(vector=count.vector + SCORE_PER_PAIR * pairs.all)


@FAMILY.counts("flex_attention_backward")
def flexible_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    query, key, value, forward_out = args[:4]
    pairs = _pairs(query, key, args[9] if len(args) > 9 else None)
    count = backward_count(pairs, query.shape[-1], value.shape[-1], forward_out.numel())
    return count._replace(vector=count.vector + 2 * SCORE_PER_PAIR * pairs.all)


def _flexible() -> None:
    tensors = [torch.zeros(2, 4, 16, 8) for _ in range(3)]
    mask = create_block_mask(
        lambda _batch, _head, query, key: query >= key, None, None, 16, 16, "cpu", BLOCK_SIZE=4
    )
    torch.ops.higher_order.flex_attention(
        *tensors, lambda score, *_where: score, mask.as_tuple(), 1.0, {}
    )


FAMILY.example(
    _flexible,
    flops=65536,
    causal=24576,
    why="2 x batch 2 x heads 4 x 16 x 16 pairs x (8 + 8); 6 of 16 blocks lie above the diagonal",
)
