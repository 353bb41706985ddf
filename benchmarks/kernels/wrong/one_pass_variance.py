# problem: variance
# implementation: numba
# mechanism: the mean of squares minus the square of the mean, in single precision: it cancels
# origin: mechanism: catastrophic cancellation

import numba
import numpy as np
import torch


@numba.njit
def variance(x, out):
    for row in range(x.shape[0]):
        total, squares = np.float32(0.0), np.float32(0.0)
        width = np.float32(x.shape[1])
        for column in range(x.shape[1]):
            value = x[row, column]
            total = np.float32(total + value)
            squares = np.float32(squares + value * value)
        out[row] = (squares - total * total / width) / (width - np.float32(1.0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[:-1], dtype=x.dtype)
        variance(x.contiguous().numpy(), out.numpy())
        return out
