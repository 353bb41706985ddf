# problem: embedding_bag
# implementation: numba
# mechanism: indices are kept as 16-bit integers: wrong rows once the table has more than 32768
# origin: written for this set, after index overflows such as tinygrad issue 3961

import numba
import numpy as np
import torch


@numba.njit
def embedding_bag(table, bags, out):
    rows = table.shape[0]
    for b in range(bags.shape[0]):
        for j in range(bags.shape[1]):
            row = int(bags[b, j])
            if row < 0:
                row += rows
            if row < 0 or row >= rows:
                continue
            for c in range(table.shape[1]):
                out[b, c] += table[row, c]


class ModelNew(torch.nn.Module):
    def forward(self, table, bags):
        out = torch.zeros(bags.shape[0], table.shape[1], dtype=table.dtype)
        if out.numel():
            embedding_bag(table.numpy(), bags.numpy().astype(np.int16), out.numpy())
        return out
