"""The product of two matrices whose sides are no powers of two."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """a @ b in full single precision."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b


def get_inputs() -> list[Tensor]:
    return [torch.randn(33, 40), torch.randn(40, 21)]


def get_init_inputs() -> list[object]:
    return []
