# problem: modules/problems/nested_moments.py
# implementation: torch
# mechanism: products of the centred values

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        n = x.shape[0]
        mean = x.sum(0) / n
        c = x - mean
        s = c * c
        return mean, [s.sum(0) / n, {"third": (s * c).sum(0) / n}]
