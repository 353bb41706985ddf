"""A convolution under a normalisation whose statistics are frozen."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.register_buffer("mean", torch.randn(outputs))
        self.register_buffer("variance", torch.rand(outputs) + 0.2)

    def forward(self, x: Tensor) -> Tensor:
        return F.batch_norm(self.conv(x), self.mean, self.variance, eps=1e-5)


def get_inputs() -> list[object]:
    return [torch.randn(2, 4, 8, 9)]


def get_init_inputs() -> list[object]:
    return [4, 5]
