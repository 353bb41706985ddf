"""The logarithm of a running sum of exponentials."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.logcumsumexp(x, dim=-1)


def get_inputs() -> list[object]:
    return [torch.randn(9, 28)]


def get_init_inputs() -> list[object]:
    return []
