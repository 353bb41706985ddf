"""The activation x tanh(softplus(x))."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.tanh(F.softplus(x))


def get_inputs() -> list[object]:
    return [torch.randn(17, 26) * 2]


def get_init_inputs() -> list[object]:
    return []
