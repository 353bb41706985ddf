# problem: modules/problems/running_logsumexp.py
# implementation: numba
# mechanism: carries the largest so far and the sum below it

import numba
import numpy as np
import torch


@numba.njit
def scan(x, out):
    for i in range(x.shape[0]):
        top = -np.inf
        total = 0.0
        for j in range(x.shape[1]):
            v = np.float64(x[i, j])
            if v == -np.inf and top == -np.inf:
                out[i, j] = -np.inf
                continue
            if v == np.inf or top == np.inf:
                top = np.inf if not (v != v) else v
                out[i, j] = top
                continue
            if v > top:
                total = total * np.exp(top - v) + 1.0
                top = v
            else:
                total += np.exp(v - top)
            out[i, j] = top + np.log(total)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape)
        scan(x.numpy(), out.numpy())
        return out
