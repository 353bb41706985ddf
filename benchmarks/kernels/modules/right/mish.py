# problem: modules/problems/mish.py
# implementation: numba
# mechanism: one exponential and a quotient of polynomials

import numba
import numpy as np
import torch


@numba.njit
def mish(x, out):
    for i in range(x.shape[0]):
        v = x[i]
        if v > 20.0:
            out[i] = v
        else:
            e = np.exp(np.float64(v))
            n = e * (e + 2.0)
            out[i] = v * n / (n + 2.0)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        mish(x.numpy().reshape(-1), out.numpy().reshape(-1))
        return out
