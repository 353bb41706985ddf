# problem: layer_norm
# implementation: numba
# mechanism: the shared partial sums are overwritten for the variance before every thread has read the mean
# origin: NVIDIA's reduction samples warn of it: a barrier is needed before shared memory is used again

import math

import torch
from numba import cuda

LANES = 8


@cuda.jit
def layer_norm(x, weight, bias, out, epsilon):
    partial = cuda.shared.array(8, "float64")
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    width = x.shape[1]
    total = 0.0
    for i in range(lane, width, LANES):
        total += float(x[row, i])
    partial[lane] = total
    cuda.syncthreads()
    mean = 0.0
    for other in range(LANES):
        mean += partial[other]
    mean /= width
    total = 0.0
    for i in range(lane, width, LANES):
        total += (float(x[row, i]) - mean) ** 2
    partial[lane] = total
    cuda.syncthreads()
    variance = 0.0
    for other in range(LANES):
        variance += partial[other]
    scale = 1.0 / math.sqrt(variance / width + epsilon)
    for i in range(lane, width, LANES):
        out[row, i] = (float(x[row, i]) - mean) * scale * float(weight[i]) + float(bias[i])


class ModelNew(torch.nn.Module):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x, weight, bias):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            width = x.shape[-1]
            rows = x.numel() // width
            layer_norm[rows, LANES](
                x.view(rows, width).numpy(), weight.numpy(), bias.numpy(),
                out.view(rows, width).numpy(), self.epsilon,
            )
        return out
