# problem: modules/problems/conv_min_tanh.py
# implementation: torch
# mechanism: tanh after the least value of an unfolded product

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3)

    def forward(self, x):
        b, _, h, w = x.shape
        columns = F.unfold(x, 3)
        y = self.conv.weight.flatten(1) @ columns + self.conv.bias[:, None]
        return y.amin(1).tanh().tanh().view(b, 1, h - 2, w - 2)
