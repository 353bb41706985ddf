"""A product, swish and a bias."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.shift = nn.Parameter(torch.randn(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return torch.sigmoid(y) * y + self.shift


def get_inputs() -> list[object]:
    return [torch.randn(11, 16)]


def get_init_inputs() -> list[object]:
    return [16, 10]
