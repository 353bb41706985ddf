"""Attention over sequences of given lengths."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Tensor:
        beyond = torch.arange(k.shape[1], device=k.device) >= lengths.unsqueeze(1)
        scores = q @ k.transpose(-2, -1) * (k.shape[-1] ** -0.5)
        return scores.masked_fill(beyond.unsqueeze(1), float("-inf")).softmax(-1) @ v


def get_inputs() -> list[object]:
    return [
        torch.randn(3, 7, 8),
        torch.randn(3, 10, 8),
        torch.randn(3, 10, 8),
        torch.randint(1, 11, (3,)),
    ]


def get_init_inputs() -> list[object]:
    return []
