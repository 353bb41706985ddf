"""A tensor divided by its Frobenius norm."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / torch.norm(x, p="fro")


def get_inputs() -> list[object]:
    return [torch.randn(3, 7, 11)]


def get_init_inputs() -> list[object]:
    return []
