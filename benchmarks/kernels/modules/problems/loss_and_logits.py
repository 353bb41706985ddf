"""A classifier that gives its loss and its logits."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(inputs, classes)

    def forward(self, x: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.head(x)
        return F.cross_entropy(logits, label), logits


def get_inputs() -> list[object]:
    return [torch.randn(14, 11), torch.randint(0, 6, (14,))]


def get_init_inputs() -> list[object]:
    return [11, 6]
