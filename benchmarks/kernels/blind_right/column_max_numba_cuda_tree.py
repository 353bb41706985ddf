# problem: column_max
# implementation: numba
# mechanism: one block per column, sixteen threads, a tree over shared memory that lets what is no number through

import math

import torch
from numba import cuda

LANES = 16


@cuda.jit(device=True)
def larger(left, right):
    if math.isnan(left) or left > right:
        return left
    return right


@cuda.jit
def column_max(x, out):
    best = cuda.shared.array(16, "float64")
    column, lane = cuda.blockIdx.x, cuda.threadIdx.x
    found = -math.inf
    for row in range(lane, x.shape[0], LANES):
        found = larger(found, x[row, column])
    best[lane] = found
    cuda.syncthreads()
    reach = LANES // 2
    while reach > 0:
        if lane < reach:
            best[lane] = larger(best[lane], best[lane + reach])
        cuda.syncthreads()
        reach //= 2
    if lane == 0:
        out[column] = best[0]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[1:], dtype=x.dtype)
        if out.numel():
            flat = x.reshape(x.shape[0], -1).contiguous()
            column_max[out.numel(), LANES](flat.numpy(), out.view(-1).numpy())
        return out
