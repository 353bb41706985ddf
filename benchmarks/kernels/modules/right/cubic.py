# problem: modules/problems/cubic.py
# implementation: numpy
# mechanism: the scheme of Horner

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        v = x.numpy()
        return torch.from_numpy(((v - np.float32(3)) * v + np.float32(3)) * v - np.float32(1))
