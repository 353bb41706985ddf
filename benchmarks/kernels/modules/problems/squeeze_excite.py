"""Channels weighed by a small network over their means."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.down = nn.Linear(channels, hidden)
        self.up = nn.Linear(hidden, channels)

    def forward(self, x: Tensor) -> Tensor:
        pooled = F.adaptive_avg_pool2d(x, 1).flatten(1)
        gate = torch.sigmoid(self.up(F.relu(self.down(pooled))))
        return x * gate[:, :, None, None]


def get_inputs() -> list[object]:
    return [torch.randn(3, 8, 6, 7)]


def get_init_inputs() -> list[object]:
    return [8, 5]
