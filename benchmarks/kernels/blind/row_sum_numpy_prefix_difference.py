# problem: row_sum
# implementation: numpy
# mechanism: one running sum over all rows in single precision, of which differences are taken; what rows share is lost
# origin: segment sums as differences of a cumulative sum; the cancellation is a textbook one

import numpy as np


class ModelNew:
    def __call__(self, x):
        width = x.shape[-1]
        running = np.zeros(x.size + 1, dtype=x.dtype)
        np.cumsum(x.reshape(-1), out=running[1:])
        edges = running[::width] if width else np.zeros(x[..., 0:0].sum(-1).size + 1, x.dtype)
        return np.diff(edges).reshape(x.shape[:-1])
