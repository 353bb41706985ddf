# problem: own_size/problems/row_sum.py
# implementation: numba
# mechanism: a loop

import numba
import numpy as np
import torch


@numba.njit
def run(x, y):
    for i in range(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        y[i] = total


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0])
        run(x.contiguous().numpy(), y.numpy())
        return y
