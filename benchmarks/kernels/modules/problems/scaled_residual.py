"""A residual connection with a strength."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor, y: Tensor, strength: float) -> Tensor:
        return x + strength * torch.tanh(y)


def get_inputs() -> list[object]:
    return [torch.randn(13, 21), torch.randn(13, 21), 0.3]


def get_init_inputs() -> list[object]:
    return []
