"""A projection whose second answer is not asked for."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        return self.output(self.query(x)), None


def get_inputs() -> list[object]:
    return [torch.randn(12, 16)]


def get_init_inputs() -> list[object]:
    return [16]
