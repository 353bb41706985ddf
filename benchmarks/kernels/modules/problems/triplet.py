"""The triplet margin loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, margin: float) -> None:
        super().__init__()
        self.loss = nn.TripletMarginLoss(margin=margin)

    def forward(self, anchor: Tensor, near: Tensor, far: Tensor) -> Tensor:
        return self.loss(anchor, near, far)


def get_inputs() -> list[object]:
    return [torch.randn(16, 10), torch.randn(16, 10), torch.randn(16, 10)]


def get_init_inputs() -> list[object]:
    return [1.0]
