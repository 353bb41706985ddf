# problem: modules/problems/separable_conv.py
# implementation: torch
# mechanism: one dense convolution with the product of both weights

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.depth = torch.nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False)
        self.point = torch.nn.Conv2d(inputs, outputs, 1, bias=False)

    def forward(self, x):
        weight = self.point.weight * self.depth.weight.transpose(0, 1)
        return F.conv2d(x, weight, padding=1)
