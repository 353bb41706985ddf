"""The difference of two squares."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a * a - b * b


def get_inputs() -> list[object]:
    return [torch.randn(21, 19), torch.randn(21, 19)]


def get_init_inputs() -> list[object]:
    return []
