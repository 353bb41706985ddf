"""The largest gap between numbers in any order."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        ordered = x.sort(dim=-1).values
        return (ordered[..., 1:] - ordered[..., :-1]).amax(-1)


def get_inputs() -> list[object]:
    return [torch.randn(9, 20)]


def get_init_inputs() -> list[object]:
    return []
