# problem: modules/problems/squeeze_excite.py
# implementation: torch
# mechanism: means of the flattened planes, sums by einsum

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.down = torch.nn.Linear(channels, hidden)
        self.up = torch.nn.Linear(hidden, channels)

    def forward(self, x):
        pooled = x.mean((2, 3))
        hidden = torch.clamp_min(pooled @ self.down.weight.t() + self.down.bias, 0)
        gate = 1 / (1 + torch.exp(-(hidden @ self.up.weight.t() + self.up.bias)))
        return torch.einsum("bchw,bc->bchw", x, gate)
