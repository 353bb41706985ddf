# problem: modules/problems/masked_sdpa.py
# implementation: torch
# mechanism: a softmax of masked scores, NaN where nothing is seen

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v, seen):
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v
