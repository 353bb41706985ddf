# problem: exp_add
# implementation: numpy
# mechanism: in place in one buffer of its own

import numpy as np


class ModelNew:
    def __call__(self, x, y):
        out = np.empty_like(x)
        np.exp(x, out=out)
        out += y
        return out
