# problem: modules/problems/summary.py
# implementation: torch
# mechanism: centred sums of squares

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        mean = x.sum(-1) / n
        square = (x - mean.unsqueeze(-1)).square().sum(-1)
        return {"mean": mean, "spread": (square / (n - 1)).sqrt(), "largest": x.max(-1).values}
