"""The exact GELU: x times the normal distribution function of x."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    """0.5 x (1 + erf(x / sqrt 2)), element by element."""

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x)


def get_inputs() -> list[Tensor]:
    return [torch.randn(33, 101) * 2]


def get_init_inputs() -> list[object]:
    return []
