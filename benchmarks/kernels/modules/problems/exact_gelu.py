"""GELU by the error function."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x)


def get_inputs() -> list[object]:
    return [torch.randn(25, 16) * 3]


def get_init_inputs() -> list[object]:
    return []
