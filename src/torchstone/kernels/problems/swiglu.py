"""A gated unit: silu of one half times the other half."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    """silu(gate) * up, where `gate` and `up` are the halves of the last axis."""

    def forward(self, x: Tensor) -> Tensor:
        gate, up = x.chunk(2, dim=-1)
        return F.silu(gate) * up


def get_inputs() -> list[Tensor]:
    return [torch.randn(24, 2 * 75)]


def get_init_inputs() -> list[object]:
    return []
