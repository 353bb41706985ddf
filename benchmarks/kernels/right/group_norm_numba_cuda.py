# problem: group_norm
# implementation: numba
# mechanism: one block per group, two threads that share their sums

import math

import torch
from numba import cuda


LANES = 2


@cuda.jit
def group_norm(x, weight, bias, out, groups, each, length):
    partial = cuda.shared.array(2, "float64")
    group, lane = cuda.blockIdx.x, cuda.threadIdx.x
    size = each * length
    total = 0.0
    for i in range(lane, size, LANES):
        total += float(x[group * size + i])
    partial[lane] = total
    cuda.syncthreads()
    mean = (partial[0] + partial[1]) / size
    cuda.syncthreads()
    total = 0.0
    for i in range(lane, size, LANES):
        distance = float(x[group * size + i]) - mean
        total += distance * distance
    partial[lane] = total
    cuda.syncthreads()
    scale = 1.0 / math.sqrt((partial[0] + partial[1]) / size + 1e-5)
    for i in range(lane, size, LANES):
        channel = group % groups * each + i // length
        distance = float(x[group * size + i]) - mean
        out[group * size + i] = distance * scale * float(weight[channel]) + float(bias[channel])


class ModelNew(torch.nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, x, weight, bias):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            batch, channels, length = x.shape
            group_norm[batch * self.groups, LANES](
                x.numpy().reshape(-1), weight.numpy(), bias.numpy(), out.numpy().reshape(-1),
                self.groups, channels // self.groups, length,
            )
        return out
