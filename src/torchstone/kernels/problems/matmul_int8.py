"""Products of eight-bit integers, summed in 32 bits."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """a @ b of int8 matrices as int32, exact."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.mm(a.to(torch.int32), b.to(torch.int32))


def get_inputs() -> list[Tensor]:
    a = torch.randint(-128, 128, (20, 40), dtype=torch.int8)
    return [a, torch.randint(-128, 128, (40, 18), dtype=torch.int8)]


def get_init_inputs() -> list[object]:
    return []
