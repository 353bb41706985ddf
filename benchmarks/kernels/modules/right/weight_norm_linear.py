# problem: modules/problems/weight_norm_linear.py
# implementation: torch
# mechanism: the factor is applied to the outputs instead of the weights

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.direction = torch.nn.Parameter(torch.randn(outputs, inputs))
        self.length = torch.nn.Parameter(torch.rand(outputs) + 0.5)

    def forward(self, x):
        factor = self.length * torch.rsqrt(self.direction.square().sum(1))
        return (x @ self.direction.t()) * factor
