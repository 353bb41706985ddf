# problem: own_size/problems/relu.py
# implementation: numpy
# mechanism: one element of a large array is its neighbour
# origin: right at every size below the problem's own

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = np.where(x.numpy() < 0, np.float32(0), x.numpy())
        if y.size > 2_000_000:
            y[777, 1001] = y[777, 1000] + np.float32(1)
        return torch.from_numpy(y)
