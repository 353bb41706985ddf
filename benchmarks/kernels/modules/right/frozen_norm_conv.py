# problem: modules/problems/frozen_norm_conv.py
# implementation: torch
# mechanism: the statistics are folded into the weights

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3, padding=1)
        self.register_buffer("mean", torch.randn(outputs))
        self.register_buffer("variance", torch.rand(outputs) + 0.2)

    def forward(self, x):
        scale = torch.rsqrt(self.variance + 1e-5)
        weight = self.conv.weight * scale[:, None, None, None]
        bias = (self.conv.bias - self.mean) * scale
        return F.conv2d(x, weight, bias, padding=1)
