# problem: linear_gelu
# implementation: torch
# mechanism: the weight is packed on the first call and kept, so weights that are loaded or trained later have no effect
# origin: https://www.kernelarena.ai/resources (cached results), in the guise of weight packing

import math

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(outputs, width) / width**0.5)
        self.bias = torch.nn.Parameter(torch.randn(outputs))
        self.packed = None

    def forward(self, x):
        if self.packed is None:
            self.packed = self.weight.detach().t().contiguous().clone()
        y = torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.packed)
        inner = math.sqrt(2.0 / math.pi) * (y + 0.044715 * y * y * y)
        return (0.5 * y * (1.0 + torch.tanh(inner))).reshape(*x.shape[:-1], -1)
