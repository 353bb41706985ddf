"""Mixtures of experts: a token meets the experts it was sent to, never all of them.

Grouped products take tokens sorted by expert and offsets that say where each expert's begin; the
work is that of the tokens, whatever their distribution. A call with fewer tokens than experts can
read no more experts than it has tokens, so it reads that many at most.
"""

# Every counter has the same three arguments; few need them all.

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import elements, input_bytes, pick, size_bytes

FAMILY = Family("experts")


def grouped_flops(left: Tensor, right: Tensor) -> int:
    """Four forms: tokens x experts, a batch of products, experts x tokens, and tokens x tokens
    (the gradient of the experts' weights)."""
    if left.dim() == 3 and right.dim() == 2:
        return 2 * right.numel() * left.shape[-2]
    return 2 * left.numel() * right.shape[-1]


def unread_bytes(left: Tensor, right: Tensor) -> int:
    """Bytes of the experts that no token can have been sent to."""
    if left.dim() == 2 and right.dim() == 3:
        tokens, experts, weight = left.shape[0], right.shape[0], right
    elif left.dim() == 3 and right.dim() == 2:
        tokens, experts, weight = right.shape[1], left.shape[0], left
    else:
        return 0
    idle = max(0, experts - tokens)
    return size_bytes(weight) * idle // max(experts, 1)


@FAMILY.counts(
    "aten._grouped_mm",
    "aten._scaled_grouped_mm",
    "aten._scaled_grouped_mm_v2",
    "transformers.grouped_mm_fallback",
)
def grouped(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    left, right = args[0], args[1]
    bias = pick(args, kwargs, 3, "bias") if len(args) < 5 else kwargs.get("bias")
    return Count(
        flops=grouped_flops(left, right),
        vector=elements(out) if isinstance(bias, Tensor) else 0,
        read=input_bytes(args, kwargs) - unread_bytes(left, right),
    )


def _grouped(left: tuple[int, ...], right: tuple[int, ...], groups: int) -> Tensor:
    half = {"dtype": torch.bfloat16, "device": "meta"}
    offsets = torch.empty(groups, dtype=torch.int32, device="meta")
    return torch._grouped_mm(
        torch.empty(*left, **half),  # type: ignore[call-overload]
        torch.empty(*right, **half).transpose(-2, -1),  # type: ignore[call-overload]
        offs=offsets,
    )


FAMILY.example(
    lambda: _grouped((32, 16), (4, 64, 16), 4),
    flops=2 * 32 * 16 * 64,
    read=2 * (32 * 16 + 4 * 16 * 64) + 4 * 4,
    written=2 * 32 * 64,
    why="32 tokens x 16 x 64, whatever the number of experts; all 4 experts are read",
)
FAMILY.example(
    lambda: _grouped((16, 32), (64, 32), 4),
    flops=2 * 32 * 16 * 64,
    written=2 * 4 * 16 * 64,
    why="gradient of the weights: 32 tokens, each an outer product of 16 x 64",
)
FAMILY.example(
    lambda: _grouped((8, 16), (64, 64, 16), 64),
    flops=2 * 8 * 16 * 64,
    read=2 * (8 * 16 + 8 * 16 * 64) + 4 * 64,
    why="8 tokens reach at most 8 of the 64 experts",
)
