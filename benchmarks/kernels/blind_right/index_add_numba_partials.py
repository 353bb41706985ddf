# problem: index_add
# implementation: numba
# mechanism: four workers gather rows in tables of their own, which are added up in a fixed order afterwards

import numba
import numpy as np
import torch

WORKERS = 4


@numba.njit(parallel=True)
def index_add(base, index, rows, out):
    targets, width = base.shape
    count = index.shape[0]
    tables = np.zeros((WORKERS, targets, width), dtype=np.float64)
    each = (count + WORKERS - 1) // WORKERS
    for worker in numba.prange(WORKERS):
        for i in range(worker * each, min((worker + 1) * each, count)):
            target = index[i]
            for column in range(width):
                tables[worker, target, column] += rows[i, column]
    for target in numba.prange(targets):
        for column in range(width):
            total = np.float64(base[target, column])
            for worker in range(WORKERS):
                total += tables[worker, target, column]
            out[target, column] = total


class ModelNew(torch.nn.Module):
    def forward(self, base, index, rows):
        out = torch.empty(base.shape, dtype=base.dtype)
        if out.numel():
            index_add(
                base.contiguous().numpy(), index.contiguous().numpy(), rows.contiguous().numpy(),
                out.numpy(),
            )
        return out
