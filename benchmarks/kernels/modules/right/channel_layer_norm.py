# problem: modules/problems/channel_layer_norm.py
# implementation: torch
# mechanism: normalises along the channels in place

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.LayerNorm(channels)

    def forward(self, x):
        centred = x - x.mean(1, keepdim=True)
        scale = torch.rsqrt(centred.pow(2).mean(1, keepdim=True) + 1e-5)
        weight, bias = self.norm.weight[:, None, None], self.norm.bias[:, None, None]
        return (centred * scale * weight + bias).contiguous()
