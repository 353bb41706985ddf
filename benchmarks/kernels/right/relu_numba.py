# problem: relu
# implementation: numba
# mechanism: compiled loop over the flat array

import numba
import numpy as np
import torch


@numba.njit
def relu(x, out):
    for i in range(x.size):
        value = x[i]
        out[i] = np.float32(0.0) if value <= 0 else value


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        relu(x.numpy().reshape(-1), out.numpy().reshape(-1))
        return out
