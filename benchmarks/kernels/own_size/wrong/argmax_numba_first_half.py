# problem: own_size/problems/argmax.py
# implementation: numba
# mechanism: long rows are searched up to place 1500
# origin: right at every size below the problem's own

import numba
import numpy as np
import torch


@numba.njit
def run(x, y):
    for i in range(x.shape[0]):
        best = 0
        for j in range(1, min(x.shape[1], 1500)):
            if x[i, j] > x[i, best]:
                best = j
        y[i] = best


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], dtype=torch.int64)
        run(x.contiguous().numpy(), y.numpy())
        return y
