"""A system with an upper triangular matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(a, b, upper=True)


def get_inputs() -> list[object]:
    return [torch.triu(torch.rand(12, 12)) + 4 * torch.eye(12), torch.randn(12, 5)]


def get_init_inputs() -> list[object]:
    return []
