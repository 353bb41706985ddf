# problem: column_max
# implementation: numba
# mechanism: the running maximum starts at zero, which is wrong when a column is negative throughout
# origin: identity and zero starts pass where every input is torch.rand, as in all runnable level-1 problems of KernelBench (Scaling Intelligence)

import numba
import numpy as np
import torch


@numba.njit
def column_max(x, out):
    for column in range(x.shape[1]):
        best = np.float32(0.0)
        for row in range(x.shape[0]):
            value = x[row, column]
            if value > best or value != value:
                best = value
        out[column] = best


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[1:], dtype=x.dtype)
        column_max(x.contiguous().numpy(), out.numpy())
        return out
