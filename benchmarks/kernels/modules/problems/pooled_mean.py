"""The mean of windows of an image."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)


def get_inputs() -> list[object]:
    return [torch.randn(2, 4, 8, 9)]


def get_init_inputs() -> list[object]:
    return []
