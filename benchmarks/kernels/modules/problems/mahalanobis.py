"""The squared distance that a covariance defines."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor, covariance: Tensor) -> Tensor:
        factor = torch.linalg.cholesky(covariance)
        return torch.cholesky_solve(x.T, factor).T.mul(x).sum(-1)


def get_inputs() -> list[object]:
    return [torch.randn(17, 8), (lambda m: m @ m.T / 8 + torch.eye(8))(torch.randn(8, 8))]


def get_init_inputs() -> list[object]:
    return []
