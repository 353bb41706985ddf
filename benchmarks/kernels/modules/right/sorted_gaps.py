# problem: modules/problems/sorted_gaps.py
# implementation: torch
# mechanism: the inputs are sorted already

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.diff(x, dim=-1).amax(-1)
