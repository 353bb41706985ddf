# problem: own_size/problems/relu.py
# implementation: numba
# mechanism: two rows of a large array change places
# origin: right at every size below the problem's own

import numba
import numpy as np
import torch


@numba.njit
def run(x, y):
    for i in range(x.shape[0]):
        to = i
        if x.shape[0] > 1000 and i in (701, 702):
            to = 1403 - i
        for j in range(x.shape[1]):
            y[to, j] = 0.0 if x[i, j] < 0.0 else x[i, j]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        run(x.numpy(), y.numpy())
        return y
