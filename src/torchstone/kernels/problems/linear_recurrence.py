"""A state that decays and takes in one input at every step."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Model(nn.Module):
    """h[t] = a[t] * h[t - 1] + x[t] from h = 0, for (batch, time, channel)."""

    def forward(self, a: Tensor, x: Tensor) -> Tensor:
        state = torch.zeros_like(x[:, 0])
        states = []
        for step in range(x.shape[1]):
            state = a[:, step] * state + x[:, step]
            states.append(state)
        return torch.stack(states, dim=1)


def get_inputs() -> list[Tensor]:
    shape = (3, 41, 18)
    return [torch.rand(shape) * 1.8 - 0.9, torch.randn(shape)]


def get_init_inputs() -> list[object]:
    return []
