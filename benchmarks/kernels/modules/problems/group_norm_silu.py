"""Group norm with an activation behind it."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, g, c):
        super().__init__()
        self.norm = nn.GroupNorm(g, c)

    def forward(self, x):
        return F.silu(self.norm(x))


def get_inputs():
    return [torch.randn(2, 12, 6, 5)]


def get_init_inputs():
    return [3, 12]
