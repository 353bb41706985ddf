# problem: modules/problems/residual_rms_norm.py
# implementation: numba
# mechanism: one pass for the sum of squares, one for the answer

import numba
import numpy as np
import torch


@numba.njit
def both(x, residual, weight, out, total):
    rows, n = x.shape
    for i in range(rows):
        square = 0.0
        for j in range(n):
            value = x[i, j] + residual[i, j]
            total[i, j] = value
            square += np.float64(value) * value
        scale = 1.0 / np.sqrt(square / n + 1e-6)
        for j in range(n):
            out[i, j] = total[i, j] * scale * weight[j]


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x, residual):
        out, total = torch.empty(x.shape), torch.empty(x.shape)
        weight = self.weight.detach().numpy()
        both(x.detach().numpy(), residual.detach().numpy(), weight, out.numpy(), total.numpy())
        return out, total
