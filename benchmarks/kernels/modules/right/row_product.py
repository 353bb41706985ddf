# problem: modules/problems/row_product.py
# implementation: numpy
# mechanism: numpy's running product, whose last is the product

import numpy as np
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        running = np.cumprod(x.numpy().astype(np.float64), axis=-1).astype(np.float32)
        return torch.from_numpy(running[:, -1].copy()), torch.from_numpy(running)
