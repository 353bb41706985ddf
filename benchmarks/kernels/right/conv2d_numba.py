# problem: conv2d
# implementation: numba
# mechanism: six nested loops; what is outside of the image is skipped

import numba
import numpy as np
import torch


@numba.njit
def conv2d(x, weight, out):
    batch, channels, rows, columns = x.shape
    for b in range(batch):
        for o in range(weight.shape[0]):
            for r in range(out.shape[2]):
                for c in range(out.shape[3]):
                    total = 0.0
                    for i in range(channels):
                        for u in range(3):
                            for v in range(3):
                                y, z = 2 * r + u - 1, 2 * c + v - 1
                                if 0 <= y < rows and 0 <= z < columns:
                                    total += float(x[b, i, y, z]) * float(weight[o, i, u, v])
                    out[b, o, r, c] = total


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        batch, _, rows, columns = x.shape
        shape = (batch, weight.shape[0], (rows + 1) // 2, (columns + 1) // 2)
        out = torch.empty(shape, dtype=x.dtype)
        conv2d(x.contiguous().numpy(), weight.contiguous().numpy(), out.numpy())
        return out
