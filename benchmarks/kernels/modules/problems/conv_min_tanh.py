"""A convolution, the least channel, tanh twice."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.min(self.conv(x), dim=1, keepdim=True).values
        return torch.tanh(torch.tanh(x))


def get_inputs() -> list[object]:
    return [torch.randn(2, 3, 9, 8)]


def get_init_inputs() -> list[object]:
    return [3, 7]
