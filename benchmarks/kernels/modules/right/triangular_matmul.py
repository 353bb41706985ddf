# problem: modules/problems/triangular_matmul.py
# implementation: numba
# mechanism: sums only from the column to the row, where both factors can be other than zero

import numba
import torch


@numba.njit
def product(a, b, out):
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(j, i + 1):
                total += a[i, k] * b[k, j]
            out[i, j] = total


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a, memory_format=torch.contiguous_format)
        product(a.numpy(), b.numpy(), out.numpy())
        return out
