# problem: modules/problems/conv_hardswish_pool.py
# implementation: torch
# mechanism: hardswish written out, windows by reshaping

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3)

    def forward(self, x):
        y = self.conv(x)
        y = y * torch.clamp(y + 3, 0, 6) / 6
        b, c, h, w = y.shape
        y = y[:, :, : h // 2 * 2, : w // 2 * 2].reshape(b, c, h // 2, 2, w // 2, 2)
        return y.amax((3, 5))
