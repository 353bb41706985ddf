"""Layer normalisation over the channels of an image."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).contiguous()


def get_inputs() -> list[object]:
    return [torch.randn(2, 12, 5, 7)]


def get_init_inputs() -> list[object]:
    return [12]
