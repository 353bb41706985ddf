# problem: modules/problems/directed_cumsum.py
# implementation: numba
# mechanism: one loop from the end that is asked for

import numba
import torch


@numba.njit
def run(x, out, backwards):
    n = x.shape[1]
    for i in range(x.shape[0]):
        total = 0.0
        for k in range(n):
            j = n - 1 - k if backwards else k
            total += x[i, j]
            out[i, j] = total


class ModelNew(torch.nn.Module):
    def forward(self, x, backwards):
        out = torch.empty(x.shape)
        run(x.numpy(), out.numpy(), backwards)
        return out
