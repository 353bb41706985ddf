"""A convolution over an image, with stride two."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    """(batch, channel, row, column), windows of three by three, stride two, padding one."""

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.conv2d(x, weight, stride=2, padding=1)


def get_inputs() -> list[Tensor]:
    return [torch.randn(2, 3, 15, 17), torch.randn(6, 3, 3, 3)]


def get_init_inputs() -> list[object]:
    return []
