"""One step of an LSTM."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(inputs, hidden)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        h, c = self.cell(x, (h, c))
        return h, c


def get_inputs() -> list[object]:
    return [torch.randn(6, 9), torch.randn(6, 7), torch.randn(6, 7)]


def get_init_inputs() -> list[object]:
    return [9, 7]
