"""A residual is added, then the root mean square divides."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        total = x + residual
        scale = torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-6)
        return total * scale * self.weight, total


def get_inputs() -> list[object]:
    return [torch.randn(10, 24), torch.randn(10, 24)]


def get_init_inputs() -> list[object]:
    return [24]
