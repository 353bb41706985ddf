"""Every token goes through the experts that it chose, and their answers are summed."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """sum over k of weights[t, k] * (x[t] @ experts[index[t, k]])."""

    def forward(self, x: Tensor, experts: Tensor, index: Tensor, weights: Tensor) -> Tensor:
        answers = torch.einsum("td,tkde->tke", x, experts[index])
        return (answers * weights.unsqueeze(-1)).sum(dim=1)


def get_inputs() -> list[Tensor]:
    tokens, experts, width, outputs = 26, 5, 20, 18
    index = torch.rand(tokens, experts).argsort(dim=-1)[:, :2].contiguous()
    weights = torch.rand(tokens, 2) + 0.1
    return [torch.randn(tokens, width), torch.randn(experts, width, outputs), index, weights]


def get_init_inputs() -> list[object]:
    return []
