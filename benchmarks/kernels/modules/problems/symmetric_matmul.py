"""A symmetric matrix times a matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b


def get_inputs() -> list[object]:
    return [(lambda m: m + m.T)(torch.randn(19, 19)), torch.randn(19, 11)]


def get_init_inputs() -> list[object]:
    return []
