"""Attention with a penalty for distance."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, slope: Tensor) -> Tensor:
        n = q.shape[-2]
        place = torch.arange(n, device=q.device)
        gap = (place.unsqueeze(0) - place.unsqueeze(1)).abs().to(q.dtype)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return (scores - slope.view(-1, 1, 1) * gap).softmax(-1) @ v


def get_inputs() -> list[object]:
    return [
        torch.randn(1, 3, 12, 8),
        torch.randn(1, 3, 12, 8),
        torch.randn(1, 3, 12, 8),
        torch.rand(3),
    ]


def get_init_inputs() -> list[object]:
    return []
