"""The sum of the outputs of a linear layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).sum(dim=1, keepdim=True) * 0.5


def get_inputs() -> list[object]:
    return [torch.randn(13, 18)]


def get_init_inputs() -> list[object]:
    return [18, 15]
