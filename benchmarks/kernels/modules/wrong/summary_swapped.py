# problem: modules/problems/summary.py
# implementation: torch
# mechanism: gives the names in another sense: the largest is that of the absolute values
# origin: mechanism: gives the names in another sense: the largest is that of the absolute values

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        spread, mean = torch.std_mean(x, -1)
        return {"mean": mean, "spread": spread, "largest": x.abs().amax(-1)}
