"""The unbiased variance of every row, whose mean is far from zero."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """Variance over the last axis, divided by n - 1."""

    def forward(self, x: Tensor) -> Tensor:
        return x.var(dim=-1, correction=1)


def get_inputs() -> list[Tensor]:
    return [torch.randn(32, 97) + 10.0 * torch.randn(32, 1)]


def get_init_inputs() -> list[object]:
    return []
