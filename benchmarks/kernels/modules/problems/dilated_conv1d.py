"""A convolution whose taps lie apart."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.conv1d(x, weight, padding=4, dilation=2)


def get_inputs() -> list[object]:
    return [torch.randn(2, 4, 21), torch.randn(6, 4, 5)]


def get_init_inputs() -> list[object]:
    return []
