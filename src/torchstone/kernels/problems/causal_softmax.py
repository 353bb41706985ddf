"""Softmax of scores in which a position sees itself and what is before it."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """Softmax over the last axis of a square, with everything above the diagonal masked out."""

    def forward(self, scores: Tensor) -> Tensor:
        length = scores.shape[-1]
        ahead = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
        return scores.masked_fill(ahead, float("-inf")).softmax(dim=-1)


def get_inputs() -> list[Tensor]:
    return [torch.randn(2, 17, 17) * 3]


def get_init_inputs() -> list[object]:
    return []
