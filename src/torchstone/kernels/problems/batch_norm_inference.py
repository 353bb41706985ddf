"""Every channel is normalised with the statistics that training left."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    """Batch normalisation of (batch, channel, position) with running mean and variance."""

    def forward(
        self, x: Tensor, mean: Tensor, spread: Tensor, weight: Tensor, bias: Tensor
    ) -> Tensor:
        variance = spread * spread
        return F.batch_norm(x, mean, variance, weight, bias, training=False, eps=1e-5)


def get_inputs() -> list[Tensor]:
    channels = 8
    spread = torch.rand(channels) + 0.5
    rest = [torch.randn(channels) for _ in range(3)]
    return [torch.randn(3, channels, 51), rest[0], spread, rest[1], rest[2]]


def get_init_inputs() -> list[object]:
    return []
