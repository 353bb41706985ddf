"""A recurrent network over a sequence."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.rnn = nn.RNN(inputs, hidden, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0]


def get_inputs() -> list[object]:
    return [torch.randn(3, 9, 5)]


def get_init_inputs() -> list[object]:
    return [5, 7]
