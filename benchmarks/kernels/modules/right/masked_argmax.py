# problem: modules/problems/masked_argmax.py
# implementation: numba
# mechanism: one pass that keeps the best so far

import numba
import numpy as np
import torch


@numba.njit
def best(x, allowed, out):
    for i in range(x.shape[0]):
        place = 0
        value = -np.inf
        for j in range(x.shape[1]):
            if allowed[i, j] and (x[i, j] > value or (x[i, j] != x[i, j] and value == value)):
                value = x[i, j]
                place = j
        out[i] = place


class ModelNew(torch.nn.Module):
    def forward(self, x, allowed):
        out = torch.empty(x.shape[0], dtype=torch.int64)
        best(x.numpy(), allowed.numpy(), out.numpy())
        return out
