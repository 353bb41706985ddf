# problem: modules/problems/summed_linear.py
# implementation: torch
# mechanism: the weights are added first, so that one product with a vector remains

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        weight = self.linear.weight.sum(0)
        return ((x * weight).sum(1, keepdim=True) + self.linear.bias.sum()) * 0.5
