# problem: matmul_transposed
# implementation: numpy
# mechanism: every product comes from ((a + b)^2 - (a - b)^2) / 4, which loses all digits when the rows of a are much larger than the rows of b
# origin: own idea: quarter-square multiplication, whose cancellation equal unit variances hide

import numpy as np


class ModelNew:
    def __call__(self, a, b):
        out = np.empty((a.shape[0], b.shape[0]), dtype=a.dtype)
        for i in range(a.shape[0]):
            plus, minus = b + a[i], b - a[i]
            out[i] = (np.square(plus) - np.square(minus)).sum(axis=1) * a.dtype.type(0.25)
        return out
