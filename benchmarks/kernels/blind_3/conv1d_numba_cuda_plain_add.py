# problem: conv1d
# implementation: numba
# mechanism: blocks that split the input channels add into one output without an atomic
# origin: written for this set; no public source looked up

import torch
from numba import cuda

THREADS = 16


@cuda.jit
def conv1d(x, weight, out):
    place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    n, o = cuda.blockIdx.y // weight.shape[0], cuda.blockIdx.y % weight.shape[0]
    c = cuda.blockIdx.z
    if place < x.shape[2]:
        total = 0.0
        for w in range(3):
            source = place + w - 1
            if 0 <= source < x.shape[2]:
                total += float(x[n, c, source]) * float(weight[o, c, w])
        out[n, o, place] += total


class ModelNew(torch.nn.Module):
    def forward(self, x, weight, bias):
        batch, channels, length = x.shape
        outputs = weight.shape[0]
        out = bias.view(1, -1, 1).repeat(batch, 1, length)
        if out.numel() and channels:
            grid = (-(-length // THREADS), batch * outputs, channels)
            conv1d[grid, THREADS](x.numpy(), weight.numpy(), out.numpy())
        return out
