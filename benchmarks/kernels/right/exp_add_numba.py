# problem: exp_add
# implementation: numba
# mechanism: compiled loop over both flat arrays

import numba
import numpy as np


@numba.njit
def exp_add(x, y, out):
    for i in range(x.size):
        out[i] = np.exp(x[i]) + y[i]


class ModelNew:
    def __call__(self, x, y):
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        out = np.empty_like(x)
        exp_add(x.reshape(-1), y.reshape(-1), out.reshape(-1))
        return out
