"""A polynomial that cancels around one."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x**3 - 3 * x**2 + 3 * x - 1


def get_inputs() -> list[object]:
    return [torch.randn(29, 14)]


def get_init_inputs() -> list[object]:
    return []
