# problem: rms_norm
# implementation: numpy
# mechanism: squares by einsum

import numpy as np


class ModelNew:
    def __init__(self, epsilon):
        self.epsilon = epsilon

    def __call__(self, x, weight):
        if not x.size:
            return np.empty_like(x)
        square = np.einsum("...i,...i->...", x, x)[..., None] / x.dtype.type(x.shape[-1])
        return x * (1 / np.sqrt(square + x.dtype.type(self.epsilon))) * weight
