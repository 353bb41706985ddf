"""The hinge loss for labels of plus and minus one."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, score: Tensor, label: Tensor) -> Tensor:
        return torch.mean(torch.clamp(1 - score * label, min=0))


def get_inputs() -> list[object]:
    return [torch.randn(48), torch.randint(0, 2, (48,)).float() * 2 - 1]


def get_init_inputs() -> list[object]:
    return []
