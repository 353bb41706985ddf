# problem: modules/problems/pixel_shuffle.py
# implementation: torch
# mechanism: a view with the axes in another order

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, scale):
        b, c, h, w = x.shape
        y = x.reshape(b, c // 4, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3)
        return y.reshape(b, c // 4, 2 * h, 2 * w) * scale
