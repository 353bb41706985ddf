# problem: layer_norm
# implementation: numba
# mechanism: rows in parallel threads

import numba
import numpy as np
import torch


@numba.njit(parallel=True)
def layer_norm(x, weight, bias, epsilon, out):
    for row in numba.prange(x.shape[0]):
        width = x.shape[1]
        mean = 0.0
        for column in range(width):
            mean += x[row, column]
        mean /= width
        variance = 0.0
        for column in range(width):
            variance += (x[row, column] - mean) ** 2
        scale = 1.0 / np.sqrt(variance / width + epsilon)
        for column in range(width):
            out[row, column] = (x[row, column] - mean) * scale * weight[column] + bias[column]


class ModelNew(torch.nn.Module):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x, weight, bias):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            layer_norm(x.numpy(), weight.numpy(), bias.numpy(), self.epsilon, out.numpy())
        return out
