# problem: modules/problems/counted_bins.py
# implementation: numba
# mechanism: counts as whole numbers

import numba
import torch


@numba.njit
def count(x, y):
    for i in range(x.size):
        y[x[i]] += 1


class ModelNew(torch.nn.Module):
    def forward(self, x):
        flat = x.contiguous().view(-1)
        y = torch.zeros(10, dtype=torch.int64)
        count(flat.numpy(), y.numpy())
        return y
