# problem: modules/problems/gathered_difference.py
# implementation: numba
# mechanism: one loop over the edges

import numba
import numpy as np
import torch


@numba.njit
def lengths(x, start, end, out):
    for e in range(start.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            d = x[end[e], j] - x[start[e], j]
            total += d * d
        out[e] = np.sqrt(total)


class ModelNew(torch.nn.Module):
    def forward(self, x, start, end):
        out = torch.empty(start.shape[0], dtype=x.dtype)
        lengths(x.numpy(), start.numpy(), end.numpy(), out.numpy())
        return out
