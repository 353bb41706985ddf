"""A convolution along one axis, with padding."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    """(batch, channel, position) with a window of three and a zero on either side."""

    def forward(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.conv1d(x, weight, bias, padding=1)


def get_inputs() -> list[Tensor]:
    return [torch.randn(2, 6, 43), torch.randn(7, 6, 3), torch.randn(7)]


def get_init_inputs() -> list[object]:
    return []
