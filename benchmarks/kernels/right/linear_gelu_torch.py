# problem: linear_gelu
# implementation: torch
# mechanism: the tanh form written out after one addmm

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outputs, width) / width**0.5)
        self.bias = torch.nn.Parameter(torch.randn(outputs))

    def forward(self, x):
        y = torch.addmm(self.bias, x, self.weight.t())
        inner = 0.7978845608028654 * (y + 0.044715 * y * y * y)
        return 0.5 * y * (1 + torch.tanh(inner))
