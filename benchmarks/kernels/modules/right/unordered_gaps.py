# problem: modules/problems/unordered_gaps.py
# implementation: numpy
# mechanism: a sort of numpy

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.from_numpy(np.diff(np.sort(x.numpy(), axis=-1), axis=-1).max(-1))
