# problem: own_size/problems/row_sum.py
# implementation: numba
# mechanism: the row counter has eleven bits
# origin: right at every size below the problem's own

import numba
import numpy as np
import torch


@numba.njit
def run(x, y):
    for i in range(x.shape[0]):
        total = np.float32(0)
        for j in range(min(x.shape[1], 1899)):
            total += x[i, j]
        y[i] = total


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0])
        run(x.contiguous().numpy(), y.numpy())
        return y
