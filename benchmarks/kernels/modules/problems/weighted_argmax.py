"""Where the weighted score is largest."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return (x * weight).argmax(dim=-1)


def get_inputs() -> list[object]:
    return [torch.randn(31, 17), torch.rand(17) + 0.5]


def get_init_inputs() -> list[object]:
    return []
