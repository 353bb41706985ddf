# problem: variance
# implementation: numba
# mechanism: Welford's way: mean and spread grow together in double precision

import numba
import numpy as np
import torch


@numba.njit
def variance(x, out):
    for row in range(x.shape[0]):
        mean, spread = 0.0, 0.0
        for column in range(x.shape[1]):
            value = float(x[row, column])
            delta = value - mean
            mean += delta / (column + 1)
            spread += delta * (value - mean)
        out[row] = spread / (x.shape[1] - 1) if x.shape[1] > 1 else np.nan


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[:-1], dtype=x.dtype)
        variance(x.contiguous().numpy(), out.numpy())
        return out
