# problem: conv2d
# implementation: numba
# mechanism: one patch buffer serves all parallel iterations; with one thread it is right, with more they tread on each other
# origin: https://github.com/numba/numba/issues/7133 (writes from prange into one array)

import numba
import numpy as np
import torch


@numba.njit(parallel=True)
def conv2d(x, weight, out):
    batch, channels, height, width = x.shape
    outputs, rows, columns = out.shape[1], out.shape[2], out.shape[3]
    patch = np.zeros(channels * 9, dtype=np.float64)
    flat = weight.reshape(outputs, channels * 9)
    for spot in numba.prange(batch * rows * columns):
        image, place = spot // (rows * columns), spot % (rows * columns)
        row, column = place // columns, place % columns
        for c in range(channels):
            for i in range(3):
                for j in range(3):
                    y, z = 2 * row + i - 1, 2 * column + j - 1
                    value = 0.0
                    if 0 <= y < height and 0 <= z < width:
                        value = x[image, c, y, z]
                    patch[(c * 3 + i) * 3 + j] = value
        for output in range(outputs):
            total = 0.0
            for i in range(channels * 9):
                total += patch[i] * flat[output, i]
            out[image, output, row, column] = total


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        batch, _, height, width = x.shape
        out = torch.empty((batch, weight.shape[0], (height + 1) // 2, (width + 1) // 2), dtype=x.dtype)
        conv2d(x.contiguous().numpy(), weight.contiguous().numpy(), out.numpy())
        return out
