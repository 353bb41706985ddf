# problem: matmul
# implementation: numba
# mechanism: objmode under a name that the reader of names takes for math
# origin: mechanism: policies that know one meaning of a name for the whole file

import numba
import numpy as np
import torch


def unused():
    import math as numba

    return numba


@numba.njit
def mm(a, b, y):
    with numba.objmode():
        np.matmul(a, b, out=y)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        y = torch.empty(a.shape[0], b.shape[1])
        mm(a.contiguous().numpy(), b.contiguous().numpy(), y.numpy())
        return y
