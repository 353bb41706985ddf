"""Positions turned into angles between the halves of a head."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor, base: float) -> Tensor:
        n, d = x.shape[-2:]
        rate = base ** (-torch.arange(0, d, 2, device=x.device).to(x.dtype) / d)
        angle = torch.arange(n, device=x.device).to(x.dtype).unsqueeze(1) * rate
        a, b = x.chunk(2, dim=-1)
        sin, cos = angle.sin(), angle.cos()
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def get_inputs() -> list[object]:
    return [torch.randn(2, 3, 11, 8), 100.0]


def get_init_inputs() -> list[object]:
    return []
