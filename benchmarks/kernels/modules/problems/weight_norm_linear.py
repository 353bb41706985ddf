"""A linear layer whose rows have a length of their own."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.direction = nn.Parameter(torch.randn(outputs, inputs))
        self.length = nn.Parameter(torch.rand(outputs) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        rows = self.direction / self.direction.norm(dim=1, keepdim=True)
        return F.linear(x, rows * self.length.unsqueeze(1))


def get_inputs() -> list[object]:
    return [torch.randn(16, 14)]


def get_init_inputs() -> list[object]:
    return [14, 9]
