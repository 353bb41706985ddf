"""Scores of all pairs, a table of both."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.exp(-(a.unsqueeze(1) - b.unsqueeze(0)).abs())


def get_inputs() -> list[object]:
    return [torch.randn(17), torch.randn(23)]


def get_init_inputs() -> list[object]:
    return []
