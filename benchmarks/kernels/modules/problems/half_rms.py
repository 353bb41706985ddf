"""RMS norm of half precision, with the factor rounded to it."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return (x.float().pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt().to(x.dtype) * x


def get_inputs():
    return [torch.randn(9, 64).half()]


def get_init_inputs():
    return []
