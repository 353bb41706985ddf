# problem: rms_norm
# implementation: numpy
# mechanism: the mean square is taken in half precision; it loses digits, and overflows for values above 255
# origin: mechanism: half precision statistics, the reason why norm layers are kept in float32 under mixed precision

import numpy as np


class ModelNew:
    def __init__(self, epsilon):
        self.epsilon = epsilon

    def __call__(self, x, weight):
        half = x.astype(np.float16)
        square = np.mean(half * half, axis=-1, keepdims=True).astype(x.dtype)
        return x / np.sqrt(square + x.dtype.type(self.epsilon)) * weight
