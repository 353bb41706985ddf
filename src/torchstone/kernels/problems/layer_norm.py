"""Every row is centred, scaled to variance one, then weighted and shifted."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    """Layer normalisation over the last axis."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (x.shape[-1],), weight, bias, self.epsilon)


def get_inputs() -> list[Tensor]:
    width = 96
    return [torch.randn(27, width) * 2 + 0.5, torch.randn(width), torch.randn(width)]


def get_init_inputs() -> list[object]:
    return [1e-5]
