"""The largest value of overlapping windows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(x, 3, stride=2, padding=1)


def get_inputs() -> list[object]:
    return [torch.randn(2, 3, 11, 14)]


def get_init_inputs() -> list[object]:
    return []
