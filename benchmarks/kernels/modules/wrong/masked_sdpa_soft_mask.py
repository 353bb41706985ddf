# problem: modules/problems/masked_sdpa.py
# implementation: torch
# mechanism: masks with a finite number, so that a row without keys takes the mean
# origin: mechanism: masks with a finite number, so that a row without keys takes the mean

import torch


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v, seen):
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        return scores.masked_fill(~seen, -1e9).softmax(-1) @ v
