# problem: row_sum
# implementation: numpy
# mechanism: a product with ones

import numpy as np


class ModelNew:
    def __call__(self, x):
        return x @ np.ones(x.shape[-1], dtype=x.dtype)
