# problem: modules/problems/conv_relu_bias.py
# implementation: torch
# mechanism: adds the second bias before the activation
# origin: mechanism: adds the second bias before the activation

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3)
        self.bias = torch.nn.Parameter(torch.randn(outputs, 1, 1))

    def forward(self, x):
        return torch.relu(self.conv(x) + self.bias)
