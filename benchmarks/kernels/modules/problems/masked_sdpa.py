"""Attention with a mask in which some queries may see nothing."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)


def get_inputs() -> list[object]:
    return [
        torch.randn(2, 2, 9, 8),
        torch.randn(2, 2, 11, 8),
        torch.randn(2, 2, 11, 8),
        (torch.rand(9, 11) > 0.4) & (torch.arange(9) != 4).unsqueeze(1),
    ]


def get_init_inputs() -> list[object]:
    return []
