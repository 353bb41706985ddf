"""A convolution, hardswish and a maximum over windows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(F.hardswish(self.conv(x)), 2)


def get_inputs() -> list[object]:
    return [torch.randn(2, 3, 10, 12)]


def get_init_inputs() -> list[object]:
    return [3, 6]
