"""A convolution, an activation and a bias after it."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3)
        self.bias = nn.Parameter(torch.randn(outputs, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.conv(x)) + self.bias


def get_inputs() -> list[object]:
    return [torch.randn(2, 3, 8, 11)]


def get_init_inputs() -> list[object]:
    return [3, 5]
