"""A convolution, an activation and batch normalisation in training or evaluation."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(F.relu(self.conv(x)))


def get_inputs() -> list[object]:
    return [torch.randn(3, 3, 9, 10)]


def get_init_inputs() -> list[object]:
    return [3, 6]
