# problem: index_add
# implementation: numba
# mechanism: rows are added one after another, so equal indices meet

import numba
import numpy as np
import torch


@numba.njit
def index_add(base, index, rows, out):
    for row in range(base.shape[0]):
        for column in range(base.shape[1]):
            out[row, column] = base[row, column]
    for place in range(index.size):
        for column in range(base.shape[1]):
            out[index[place], column] += rows[place, column]


class ModelNew(torch.nn.Module):
    def forward(self, base, index, rows):
        out = torch.empty(base.shape, dtype=base.dtype)
        index_add(
            base.contiguous().numpy(), index.contiguous().numpy(), rows.contiguous().numpy(),
            out.numpy(),
        )
        return out
