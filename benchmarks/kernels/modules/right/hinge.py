# problem: modules/problems/hinge.py
# implementation: numpy
# mechanism: maximum in numpy, mean in double

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, score, label):
        loss = np.maximum(np.float32(1) - score.numpy() * label.numpy(), np.float32(0))
        return torch.tensor(loss.mean(dtype=np.float64), dtype=torch.float32)
