# problem: matmul_transposed
# implementation: numpy
# mechanism: einsum over the shared axis

import numpy as np


class ModelNew:
    def __call__(self, a, b):
        return np.einsum("ik,jk->ij", a, b)
