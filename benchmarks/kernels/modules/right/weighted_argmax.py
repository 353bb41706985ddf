# problem: modules/problems/weighted_argmax.py
# implementation: numpy
# mechanism: numpy finds the place

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        return torch.from_numpy(np.argmax(x.numpy() * weight.numpy(), axis=-1))
