"""Negative values become zero."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """max(x, 0), element by element."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x)


def get_inputs() -> list[Tensor]:
    return [torch.randn(24, 37)]


def get_init_inputs() -> list[object]:
    return []
