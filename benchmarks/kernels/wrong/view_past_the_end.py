# problem: relu
# implementation: numpy
# mechanism: as_strided reads past the end of an array
# origin: mechanism: as_strided of numpy checks nothing

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided


class ModelNew(torch.nn.Module):
    def forward(self, x):
        a = np.ascontiguousarray(x.numpy())
        far = as_strided(a, (a.size + 4000,), (4,))
        z = far[a.size :].copy()
        return torch.from_numpy(np.maximum(a, np.float32(0)))
