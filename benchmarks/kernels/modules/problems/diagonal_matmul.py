"""A diagonal matrix times a matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.diag(a) @ b


def get_inputs() -> list[object]:
    return [torch.randn(18), torch.randn(18, 25)]


def get_init_inputs() -> list[object]:
    return []
