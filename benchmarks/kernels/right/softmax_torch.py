# problem: softmax
# implementation: torch
# mechanism: written out: shift, exponential, sum

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not x.numel():
            return torch.empty_like(x)
        weights = torch.exp(x - x.amax(dim=-1, keepdim=True))
        return weights / weights.sum(dim=-1, keepdim=True)
