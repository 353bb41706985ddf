# problem: modules/problems/masked_mean.py
# implementation: torch
# mechanism: a product of matrices with the mask

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, counts):
        weight = counts.to(x.dtype)
        total = torch.einsum("bld,bl->bd", x, weight)
        return total / weight.sum(1, keepdim=True).clamp_min(1)
