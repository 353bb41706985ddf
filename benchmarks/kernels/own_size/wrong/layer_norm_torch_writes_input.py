# problem: own_size/problems/layer_norm.py
# implementation: torch
# mechanism: large inputs are centred in place
# origin: right at every size below the problem's own

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        if x.shape[0] > 1200:
            y = self.norm(x)
            x -= x.mean(dim=-1, keepdim=True)
            return y
        return self.norm(x)
