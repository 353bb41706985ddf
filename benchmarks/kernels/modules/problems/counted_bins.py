"""How often each of ten numbers is there."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.bincount(x.view(-1), minlength=10)


def get_inputs():
    return [torch.randint(0, 10, (7, 31))]


def get_init_inputs():
    return []
