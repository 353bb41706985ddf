"""A softmax with a temperature that is a tensor without axes."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor, temperature: Tensor) -> Tensor:
        return torch.softmax(x / temperature, dim=-1)


def get_inputs() -> list[object]:
    return [torch.randn(14, 31) * 2, torch.tensor(0.7)]


def get_init_inputs() -> list[object]:
    return []
