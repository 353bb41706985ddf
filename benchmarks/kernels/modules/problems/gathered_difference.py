"""Differences between the ends of edges."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor, start: Tensor, end: Tensor) -> Tensor:
        return (x[end] - x[start]).norm(dim=-1)


def get_inputs() -> list[object]:
    return [torch.randn(14, 6), torch.randint(0, 14, (33,)), torch.randint(0, 14, (33,))]


def get_init_inputs() -> list[object]:
    return []
