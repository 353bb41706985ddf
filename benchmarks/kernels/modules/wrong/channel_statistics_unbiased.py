# problem: modules/problems/channel_statistics.py
# implementation: torch
# mechanism: divides the variance by n - 1
# origin: mechanism: divides the variance by n - 1

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.InstanceNorm2d(channels, affine=True)

    def forward(self, x):
        flat = x.flatten(2)
        var, mean = torch.var_mean(flat, -1, keepdim=True)
        out = (flat - mean) * torch.rsqrt(var + self.norm.eps)
        return (out * self.norm.weight[:, None] + self.norm.bias[:, None]).view(x.shape)
