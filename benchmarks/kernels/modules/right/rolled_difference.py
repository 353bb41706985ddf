# problem: modules/problems/rolled_difference.py
# implementation: torch
# mechanism: two parts, put together

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, places):
        n = x.shape[-1]
        k = places % n if n else 0
        return x - torch.cat([x[..., n - k :], x[..., : n - k]], dim=-1)
