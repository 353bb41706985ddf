"""The clipped objective of a policy update."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, ratio: Tensor, gain: Tensor, epsilon: float) -> Tensor:
        clipped = torch.clamp(ratio, 1 - epsilon, 1 + epsilon)
        return -torch.min(ratio * gain, clipped * gain).mean()


def get_inputs() -> list[object]:
    return [torch.rand(64) + 0.5, torch.randn(64), 0.2]


def get_init_inputs() -> list[object]:
    return []
