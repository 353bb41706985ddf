# problem: modules/problems/channel_statistics.py
# implementation: torch
# mechanism: mean and variance of the flattened planes

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.InstanceNorm2d(channels, affine=True)

    def forward(self, x):
        flat = x.flatten(2)
        mean = flat.mean(-1, keepdim=True)
        centred = flat - mean
        scale = torch.rsqrt(centred.square().mean(-1, keepdim=True) + self.norm.eps)
        out = centred * scale * self.norm.weight[:, None] + self.norm.bias[:, None]
        return out.view(x.shape)
