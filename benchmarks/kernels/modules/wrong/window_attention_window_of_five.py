# problem: modules/problems/window_attention.py
# implementation: torch
# mechanism: sees one position too many
# origin: mechanism: sees one position too many

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        n = q.shape[-2]
        full = torch.ones(n, n, dtype=torch.bool)
        seen = full.tril() & full.triu(-4)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v
