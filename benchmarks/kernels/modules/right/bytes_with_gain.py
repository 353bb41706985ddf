# problem: modules/problems/bytes_with_gain.py
# implementation: numba
# mechanism: bytes in, bytes out, with saturation

import math

import numba
import torch
import numpy as np


@numba.njit
def k(x, gain, y):
    g = np.float32(gain)
    for i in range(x.size):
        v = np.float32(x[i]) * g + np.float32(0.5)
        v = min(max(v, np.float32(0)), np.float32(255))
        y[i] = np.uint8(math.floor(v))


class ModelNew(torch.nn.Module):
    def forward(self, x, gain):
        x = x.contiguous()
        y = torch.empty_like(x)
        k(x.view(-1).numpy(), gain, y.view(-1).numpy())
        return y
