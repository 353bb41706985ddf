"""Rows divided by the mean of their absolute values."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / x.abs().mean(dim=1, keepdim=True)


def get_inputs() -> list[object]:
    return [torch.randn(12, 45)]


def get_init_inputs() -> list[object]:
    return []
