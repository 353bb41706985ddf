"""Instance normalisation with a weight per channel."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.InstanceNorm2d(channels, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


def get_inputs() -> list[object]:
    return [torch.randn(2, 5, 9, 7)]


def get_init_inputs() -> list[object]:
    return [5]
