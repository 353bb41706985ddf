# problem: own_size/problems/relu.py
# implementation: numba
# mechanism: the last block of many is left out
# origin: right at every size below the problem's own

import numba
import numpy as np
import torch


@numba.njit
def run(x, y):
    rows = x.shape[0]
    if rows > 1024:
        rows = rows // 16 * 16
    for i in range(rows):
        for j in range(x.shape[1]):
            y[i, j] = 0.0 if x[i, j] < 0.0 else x[i, j]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        run(x.numpy(), y.numpy())
        return y
