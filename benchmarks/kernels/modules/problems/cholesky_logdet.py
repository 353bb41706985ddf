"""The logarithm of the determinant of a positive definite matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, a: Tensor) -> Tensor:
        return 2 * torch.linalg.cholesky(a).diagonal(dim1=-2, dim2=-1).log().sum(-1)


def get_inputs() -> list[object]:
    return [(lambda m: m @ m.transpose(-2, -1) + 3 * torch.eye(9))(torch.randn(4, 9, 9))]


def get_init_inputs() -> list[object]:
    return []
