"""Moments in a nested answer."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, list[object]]:
        mean = x.mean(0)
        centred = x - mean
        return mean, [centred.square().mean(0), {"third": centred.pow(3).mean(0)}]


def get_inputs() -> list[object]:
    return [torch.randn(31, 6)]


def get_init_inputs() -> list[object]:
    return []
