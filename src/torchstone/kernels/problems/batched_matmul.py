"""Many small products of matrices at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """a[i] @ b[i] for every i."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.bmm(a, b)


def get_inputs() -> list[Tensor]:
    return [torch.randn(2, 19, 21), torch.randn(2, 21, 18)]


def get_init_inputs() -> list[object]:
    return []
