# problem: rms_norm
# implementation: numba
# mechanism: the mean square in double precision, then one multiplication per element

import numba
import numpy as np


@numba.njit
def rms_norm(x, weight, epsilon, out):
    rows, width = x.shape
    for row in range(rows):
        total = 0.0
        for column in range(width):
            total += float(x[row, column]) * float(x[row, column])
        root = np.sqrt(total / width + epsilon) if width else 1.0
        for column in range(width):
            out[row, column] = x[row, column] / root * weight[column]


class ModelNew:
    def __init__(self, epsilon):
        self.epsilon = epsilon

    def __call__(self, x, weight):
        out = np.empty_like(x, order="C")
        rms_norm(x, weight, self.epsilon, out)
        return out
