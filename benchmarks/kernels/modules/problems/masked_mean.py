"""The mean over the positions that count."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor, counts: Tensor) -> Tensor:
        weight = counts.unsqueeze(-1).to(x.dtype)
        return (x * weight).sum(1) / weight.sum(1).clamp(min=1)


def get_inputs() -> list[object]:
    return [torch.randn(5, 13, 8), torch.rand(5, 13) > 0.5]


def get_init_inputs() -> list[object]:
    return []
