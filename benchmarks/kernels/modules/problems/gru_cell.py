"""One step of a GRU."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(inputs, hidden)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return self.cell(x, h)


def get_inputs() -> list[object]:
    return [torch.randn(8, 10), torch.randn(8, 6)]


def get_init_inputs() -> list[object]:
    return [10, 6]
