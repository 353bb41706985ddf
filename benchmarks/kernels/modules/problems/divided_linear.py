"""A linear layer divided by a constant."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, divisor: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.divisor = divisor

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.linear(x) / self.divisor)


def get_inputs() -> list[object]:
    return [torch.randn(19, 22)]


def get_init_inputs() -> list[object]:
    return [22, 13, 3.7]
