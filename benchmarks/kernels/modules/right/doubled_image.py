# problem: modules/problems/doubled_image.py
# implementation: torch
# mechanism: repeats rows and columns, then adds three of each

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x.repeat_interleave(2, 2).repeat_interleave(2, 3)
        y = y[:, :, :-2] + y[:, :, 1:-1] + y[:, :, 2:]
        return (y[..., :-2] + y[..., 1:-1] + y[..., 2:]) / 9
