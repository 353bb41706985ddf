# problem: depthwise_conv2d
# implementation: numba
# mechanism: one thread per output element

import torch
from numba import cuda


@cuda.jit
def depthwise(x, weight, out):
    place = cuda.grid(1)
    batch, channels, rows, columns = x.shape
    if place < batch * channels * rows * columns:
        c = place % columns
        r = place // columns % rows
        i = place // (columns * rows) % channels
        b = place // (columns * rows * channels)
        total = 0.0
        for u in range(3):
            for v in range(3):
                y, z = r + u - 1, c + v - 1
                if y >= 0 and y < rows and z >= 0 and z < columns:
                    total += float(x[b, i, y, z]) * float(weight[i, 0, u, v])
        out[b, i, r, c] = total


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        x, weight = x.contiguous(), weight.contiguous()
        out = torch.empty_like(x)
        size = out.numel()
        if size:
            depthwise[(size + 63) // 64, 64](x.numpy(), weight.numpy(), out.numpy())
        return out
