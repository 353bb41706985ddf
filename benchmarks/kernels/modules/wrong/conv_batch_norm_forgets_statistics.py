# problem: modules/problems/conv_batch_norm.py
# implementation: torch
# mechanism: never updates the running statistics
# origin: mechanism: never updates the running statistics

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3)
        self.norm = torch.nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = torch.relu(self.conv(x))
        norm = self.norm
        if self.training:
            return F.batch_norm(y, None, None, norm.weight, norm.bias, training=True)
        return F.batch_norm(y, norm.running_mean, norm.running_var, norm.weight, norm.bias)
