# problem: matmul_transposed
# implementation: numpy
# mechanism: which side of b to sum over is guessed from its shape, and guessed wrongly when b is square
# origin: shape-guessing wrappers; a test in which all sides differ does not show it

import numpy as np


class ModelNew:
    def __call__(self, a, b):
        if b.shape[0] == a.shape[1]:
            return np.einsum("ik,kj->ij", a, b)
        return np.einsum("ik,jk->ij", a, b)
