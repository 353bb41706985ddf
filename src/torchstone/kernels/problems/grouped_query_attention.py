"""Attention in which several query heads share one head of keys and values."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """q is (batch, heads, position, d), k and v are (batch, fewer heads, position, d)."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        shared = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(shared, dim=1), v.repeat_interleave(shared, dim=1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return scores.softmax(dim=-1) @ v


def get_inputs() -> list[Tensor]:
    query = torch.randn(1, 4, 11, 16) * 2
    return [query, torch.randn(1, 2, 14, 16), torch.randn(1, 2, 14, 16)]


def get_init_inputs() -> list[object]:
    return []
