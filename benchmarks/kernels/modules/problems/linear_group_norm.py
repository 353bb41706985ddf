"""A linear layer, group normalisation and a clamp."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, groups: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.norm = nn.GroupNorm(groups, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.hardtanh(self.norm(self.linear(x)), -1.5, 1.5)


def get_inputs() -> list[object]:
    return [torch.randn(9, 14)]


def get_init_inputs() -> list[object]:
    return [14, 12, 3]
