# problem: modules/problems/symmetric_matmul.py
# implementation: numba
# mechanism: reads the upper half of the symmetric matrix only

import numba
import torch


@numba.njit
def product(a, b, out):
    n, m = b.shape
    for i in range(n):
        for j in range(m):
            total = 0.0
            for k in range(n):
                total += (a[i, k] if i <= k else a[k, i]) * b[k, j]
            out[i, j] = total


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        out = torch.empty(b.shape, dtype=b.dtype)
        product(a.numpy(), b.numpy(), out.numpy())
        return out
