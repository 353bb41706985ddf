"""The product of two lower triangular matrices."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.tril(torch.matmul(a, b))


def get_inputs() -> list[object]:
    return [torch.tril(torch.randn(24, 24)), torch.tril(torch.randn(24, 24))]


def get_init_inputs() -> list[object]:
    return []
