"""A linear layer with a bias, followed by the tanh form of GELU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    """gelu(x @ weight.T + bias) with parameters of its own."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, width) / width**0.5)
        self.bias = nn.Parameter(torch.randn(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(F.linear(x, self.weight, self.bias), approximate="tanh")


def get_inputs() -> list[Tensor]:
    return [torch.randn(19, 26)]


def get_init_inputs() -> list[object]:
    return [26, 21]
