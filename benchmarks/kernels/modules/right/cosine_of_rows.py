# problem: modules/problems/cosine_of_rows.py
# implementation: torch
# mechanism: the product over the root of both squares, each floored

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        x = a / a.norm(dim=-1, keepdim=True).clamp_min(1e-8)
        y = b / b.norm(dim=-1, keepdim=True).clamp_min(1e-8)
        return (x * y).sum(-1)
