# problem: matmul_int8
# implementation: numba
# mechanism: the sum is kept in 16 bits and wraps around
# origin: mechanism: integer overflow in an accumulator

import numba
import numpy as np
import torch


@numba.njit
def matmul(a, b, out):
    for r in range(a.shape[0]):
        for c in range(b.shape[1]):
            total = np.int16(0)
            for k in range(a.shape[1]):
                total = np.int16(total + np.int16(a[r, k]) * np.int16(b[k, c]))
            out[r, c] = total


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        out = torch.empty((a.shape[0], b.shape[1]), dtype=torch.int32)
        matmul(a.contiguous().numpy(), b.contiguous().numpy(), out.numpy())
        return out
