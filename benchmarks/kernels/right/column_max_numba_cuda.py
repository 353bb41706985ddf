# problem: column_max
# implementation: numba
# mechanism: one thread per column; NaN wins

import torch
from numba import cuda


@cuda.jit
def column_max(x, out):
    column = cuda.grid(1)
    if column < x.shape[1]:
        best = x[0, column]
        for row in range(1, x.shape[0]):
            value = x[row, column]
            if value > best or value != value:
                best = value
        out[column] = best


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[1:], dtype=x.dtype)
        if out.numel():
            column_max[(out.numel() + 31) // 32, 32](x.contiguous().numpy(), out.numpy())
        return out
