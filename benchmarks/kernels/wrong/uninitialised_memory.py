# problem: embedding_bag
# implementation: numba
# mechanism: sums grow in a buffer that nobody set to zero
# origin: wafer.ai's field guide (2026): a kernel that read garbage shared memory passed

import numba
import numpy as np
import torch


@numba.njit
def bags_of(table, bags, out):
    for bag in range(bags.shape[0]):
        for place in range(bags.shape[1]):
            for column in range(table.shape[1]):
                out[bag, column] += table[bags[bag, place], column]


class ModelNew(torch.nn.Module):
    def forward(self, table, bags):
        out = torch.empty((bags.shape[0], table.shape[1]), dtype=table.dtype)
        bags_of(table.contiguous().numpy(), bags.contiguous().numpy(), out.numpy())
        return out
