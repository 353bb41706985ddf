# problem: gelu
# implementation: numba
# mechanism: an elementwise function made by vectorize

import numba
import torch


import math


@numba.vectorize(["float32(float32)"])
def gelu(x):
    return 0.5 * x * (1.0 + math.erf(x * 0.7071067811865476))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape, dtype=x.dtype)
        gelu(x.contiguous().numpy(), out.numpy())
        return out
