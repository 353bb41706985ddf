# problem: index_add
# implementation: numba
# mechanism: parallel iterations add to the same row without protection; updates are lost
# origin: numba/numba#3681: += on one element from several iterations of prange is a race

import numba
import torch


@numba.njit(parallel=True)
def add(out, index, rows):
    for i in numba.prange(index.shape[0]):
        for j in range(rows.shape[1]):
            out[index[i], j] += rows[i, j]


class ModelNew(torch.nn.Module):
    def forward(self, base, index, rows):
        out = base.clone()
        add(out.numpy(), index.numpy(), rows.numpy())
        return out
