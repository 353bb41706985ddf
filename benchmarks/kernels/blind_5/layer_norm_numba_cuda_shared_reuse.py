# problem: layer_norm
# implementation: numba
# mechanism: one shared buffer serves the sum and then the squares, with no barrier between the
#   last read of the mean and the first write of the squares (write after read race)
# origin: flashinfer-ai/flashinfer pull 3607 (warp_sums reused for mean and variance),
#   NVIDIA/apex pull 1184, ml-explore/mlx pull 2340

import numba
import torch
from numba import cuda

THREADS = 32


@cuda.jit
def normalise(x, weight, bias, out, epsilon):
    shared = cuda.shared.array(THREADS, numba.float32)
    row = cuda.blockIdx.x
    lane = cuda.threadIdx.x
    width = x.shape[1]

    total = numba.float32(0.0)
    for column in range(lane, width, THREADS):
        total += x[row, column]
    shared[lane] = total
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if lane < step:
            shared[lane] += shared[lane + step]
        cuda.syncthreads()
        step //= 2
    mean = shared[0] / width

    total = numba.float32(0.0)
    for column in range(lane, width, THREADS):
        away = x[row, column] - mean
        total += away * away
    shared[lane] = total
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if lane < step:
            shared[lane] += shared[lane + step]
        cuda.syncthreads()
        step //= 2
    scale = 1.0 / (shared[0] / width + epsilon) ** 0.5

    for column in range(lane, width, THREADS):
        out[row, column] = (x[row, column] - mean) * scale * weight[column] + bias[column]


class ModelNew(torch.nn.Module):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x, weight, bias):
        rows = x.contiguous().reshape(-1, x.shape[-1])
        out = torch.empty_like(rows)
        if out.numel():
            normalise[rows.shape[0], THREADS](
                rows.numpy(),
                weight.contiguous().numpy(),
                bias.contiguous().numpy(),
                out.numpy(),
                self.epsilon,
            )
        return out.reshape(x.shape)
