# problem: row_sum
# implementation: numba
# mechanism: sums run in 32-bit fixed point with twenty bits after the point; small values vanish, sums past 2048 wrap
# origin: reductions in fixed point are a common way to reproducible sums; the range of the integers is the slip

import numba
import numpy as np


@numba.njit
def row_sum(x, out):
    for row in range(x.shape[0]):
        total = np.int32(0)
        for column in range(x.shape[1]):
            total = np.int32(total + np.int32(np.rint(x[row, column] * np.float32(1048576.0))))
        out[row] = np.float32(total) / np.float32(1048576.0)


class ModelNew:
    def __call__(self, x):
        flat = np.ascontiguousarray(x).reshape(-1, x.shape[-1])
        out = np.empty(flat.shape[0], dtype=x.dtype)
        row_sum(flat, out)
        return out.reshape(x.shape[:-1])
