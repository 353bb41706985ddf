# problem: modules/problems/group_norm_silu.py
# implementation: numpy
# mechanism: statistics in double by numpy

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, g, c):
        super().__init__()
        self.norm = torch.nn.GroupNorm(g, c)

    def forward(self, x):
        n, c = x.shape[:2]
        a = x.numpy().astype(np.float64).reshape(n, self.norm.num_groups, -1)
        z = (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + self.norm.eps)
        z = z.reshape(x.shape)
        w = self.norm.weight.detach().numpy().reshape(1, -1, 1, 1)
        b = self.norm.bias.detach().numpy().reshape(1, -1, 1, 1)
        z = z * w + b
        with np.errstate(over="ignore"):
            z = z / (1 + np.exp(-z))
        return torch.from_numpy(z.astype(np.float32))
