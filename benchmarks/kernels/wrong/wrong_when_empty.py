# problem: row_sum
# implementation: numba
# mechanism: the sum starts with the first element, which an empty row does not have
# origin: mechanism: wrong at size zero

import numba
import numpy as np


@numba.njit
def row_sum(x, out):
    for row in range(x.shape[0]):
        total = float(x[row, 0])
        for column in range(1, x.shape[1]):
            total += x[row, column]
        out[row] = total


class ModelNew:
    def __call__(self, x):
        out = np.empty(x.shape[:-1], dtype=x.dtype)
        row_sum(x, out)
        return out
