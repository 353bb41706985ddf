# problem: own_size/problems/layer_norm.py
# implementation: torch
# mechanism: large inputs lose the epsilon
# origin: right at every size below the problem's own

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        if x.shape[0] < 1024:
            return self.norm(x)
        mean = x.mean(dim=-1, keepdim=True)
        spread = x.var(dim=-1, keepdim=True)
        return (x - mean) / torch.sqrt(spread + 1e-5) * self.norm.weight + self.norm.bias
