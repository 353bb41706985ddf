# problem: exp_add
# implementation: numba
# mechanism: each array is flattened in its own memory order and the answer is shaped in C order, so Fortran-ordered or transposed inputs come back scrambled
# origin: engines that discard strides (review of NVIDIA/cudnn-frontend pull request 1061); here numpy.ravel(order="K")

import numba
import numpy as np


@numba.njit
def exp_add(x, y, out):
    for place in range(x.shape[0]):
        out[place] = np.exp(x[place]) + y[place]


class ModelNew:
    def __call__(self, x, y):
        out = np.empty(x.size, dtype=x.dtype)
        exp_add(x.ravel(order="K"), y.ravel(order="K"), out)
        return out.reshape(x.shape)
