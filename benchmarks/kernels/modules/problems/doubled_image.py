"""An image made twice as large, then blurred."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = F.interpolate(x, scale_factor=2, mode="nearest")
        return F.avg_pool2d(y, 3, stride=1)


def get_inputs() -> list[object]:
    return [torch.randn(2, 3, 6, 7)]


def get_init_inputs() -> list[object]:
    return []
