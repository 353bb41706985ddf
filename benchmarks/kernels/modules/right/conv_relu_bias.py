# problem: modules/problems/conv_relu_bias.py
# implementation: torch
# mechanism: windows as a matrix, one product

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3)
        self.bias = torch.nn.Parameter(torch.randn(outputs, 1, 1))

    def forward(self, x):
        windows = x.unfold(2, 3, 1).unfold(3, 3, 1)
        y = torch.einsum("bchwij,ocij->bohw", windows, self.conv.weight)
        return torch.relu(y + self.conv.bias[:, None, None]) + self.bias
