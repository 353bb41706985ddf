# problem: modules/problems/unordered_gaps.py
# implementation: torch
# mechanism: takes the inputs for sorted
# origin: mechanism: takes the inputs for sorted

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.diff(x, dim=-1).amax(-1)
