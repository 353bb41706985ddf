"""Attention in which a position sees itself and what is before it."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """Scaled dot product attention with a causal mask, for (batch, head, position, d)."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        length = q.shape[-2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        ahead = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        return scores.masked_fill(ahead, float("-inf")).softmax(dim=-1) @ v


def get_inputs() -> list[Tensor]:
    return [torch.randn(1, 2, 18, 16) * (2 if i == 0 else 1) for i in range(3)]


def get_init_inputs() -> list[object]:
    return []
