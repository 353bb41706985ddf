# problem: modules/problems/clipped_ratio.py
# implementation: numpy
# mechanism: minimum and maximum of numpy

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, ratio, gain, epsilon):
        r, g = ratio.numpy(), gain.numpy()
        low, high = np.float32(1 - epsilon), np.float32(1 + epsilon)
        clipped = np.minimum(np.maximum(r, low), high)
        return torch.tensor(-np.minimum(r * g, clipped * g).mean(dtype=np.float64), dtype=torch.float32)
