# problem: argmax
# implementation: numba
# mechanism: the first of the largest; NaN counts as larger than everything

import numba
import numpy as np
import torch


@numba.njit
def argmax(x, out):
    for row in range(x.shape[0]):
        best = 0
        for column in range(1, x.shape[1]):
            value, known = x[row, column], x[row, best]
            if value > known or (np.isnan(value) and not np.isnan(known)):
                best = column
        out[row] = best


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[:-1], dtype=torch.int64)
        argmax(x.contiguous().numpy(), out.numpy())
        return out
