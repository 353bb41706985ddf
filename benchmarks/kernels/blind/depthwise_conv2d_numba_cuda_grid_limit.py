# problem: depthwise_conv2d
# implementation: numba
# mechanism: at most eight blocks are launched and none takes a second plane, so planes past the eighth stay zero
# origin: a grid capped to the device without the grid-stride loop that goes with it (NVIDIA's grid-stride loop article)

import torch
from numba import cuda

THREADS = 4


@cuda.jit
def depthwise(x, weight, out, channels):
    plane = cuda.blockIdx.x
    height, width = x.shape[1], x.shape[2]
    channel = plane % channels
    for place in range(cuda.threadIdx.x, height * width, THREADS):
        row, column = place // width, place % width
        total = 0.0
        for i in range(3):
            for j in range(3):
                y, z = row + i - 1, column + j - 1
                if 0 <= y and y < height and 0 <= z and z < width:
                    total += float(x[plane, y, z]) * float(weight[channel, i, j])
        out[plane, row, column] = total


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        batch, channels, height, width = x.shape
        planes = x.contiguous().view(batch * channels, height, width)
        filters = weight.contiguous().view(channels, 3, 3)
        out = torch.zeros_like(planes)
        if out.numel():
            depthwise[min(batch * channels, 8), THREADS](
                planes.numpy(), filters.numpy(), out.numpy(), channels
            )
        return out.view(batch, channels, height, width)
