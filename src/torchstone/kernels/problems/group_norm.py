"""Every group of channels is centred and scaled to variance one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    """Group normalisation of (batch, channel, position) with a weight and a bias per channel."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.group_norm(x, self.groups, weight, bias, 1e-5)


def get_inputs() -> list[Tensor]:
    channels = 6
    return [torch.randn(2, channels, 37) + 0.3, torch.randn(channels), torch.randn(channels)]


def get_init_inputs() -> list[object]:
    return [3]
