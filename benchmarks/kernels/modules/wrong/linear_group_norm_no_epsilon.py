# problem: modules/problems/linear_group_norm.py
# implementation: torch
# mechanism: leaves the epsilon out of the root
# origin: mechanism: leaves the epsilon out of the root

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs, groups):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)
        self.norm = torch.nn.GroupNorm(groups, outputs)
        self.groups = groups

    def forward(self, x):
        y = self.linear(x).unflatten(1, (self.groups, -1))
        var, mean = torch.var_mean(y, -1, correction=0, keepdim=True)
        y = ((y - mean) * torch.rsqrt(var)).flatten(1)
        return torch.clamp(y * self.norm.weight + self.norm.bias, -1.5, 1.5)
