"""A depthwise and a pointwise convolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.depth = nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False)
        self.point = nn.Conv2d(inputs, outputs, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.point(self.depth(x))


def get_inputs() -> list[object]:
    return [torch.randn(2, 6, 7, 9)]


def get_init_inputs() -> list[object]:
    return [6, 8]
