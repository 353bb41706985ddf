# problem: row_sum
# implementation: numba
# mechanism: one accumulator in double precision per row

import numba
import numpy as np


@numba.njit
def row_sum(x, out):
    for row in range(x.shape[0]):
        total = 0.0
        for column in range(x.shape[1]):
            total += x[row, column]
        out[row] = total


class ModelNew:
    def __call__(self, x):
        out = np.empty(x.shape[:-1], dtype=x.dtype)
        row_sum(x, out)
        return out
