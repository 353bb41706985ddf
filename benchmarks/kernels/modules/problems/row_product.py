"""The product of every row and the running product."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.prod(-1), x.cumprod(-1)


def get_inputs() -> list[object]:
    return [torch.rand(15, 12) + 0.5]


def get_init_inputs() -> list[object]:
    return []
