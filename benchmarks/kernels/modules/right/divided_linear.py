# problem: modules/problems/divided_linear.py
# implementation: torch
# mechanism: times the reciprocal

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs, divisor):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)
        self.factor = 1 / divisor

    def forward(self, x):
        return F.gelu(self.linear(x) * self.factor)
