"""A transposed convolution with a stride."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.conv_transpose1d(x, weight, stride=2)


def get_inputs() -> list[object]:
    return [torch.randn(2, 5, 13), torch.randn(5, 6, 3)]


def get_init_inputs() -> list[object]:
    return []
