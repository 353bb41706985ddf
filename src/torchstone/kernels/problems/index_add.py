"""Rows are added to the rows that an index names; several may name the same one."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """A copy of `base` in which base[index[i]] has grown by rows[i]."""

    def forward(self, base: Tensor, index: Tensor, rows: Tensor) -> Tensor:
        return base.index_add(0, index, rows)


def get_inputs() -> list[Tensor]:
    base, rows = torch.randn(17, 23), torch.randn(60, 23)
    return [base, torch.randint(0, 17, (60,)), rows]


def get_init_inputs() -> list[object]:
    return []
