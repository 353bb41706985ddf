# problem: relu
# implementation: torch
# mechanism: a module that is imported inside of a class is reached through the class
# origin: mechanism: policies that follow names and not members

import torch


class Box:
    import torch as inner


class ModelNew(torch.nn.Module):
    def forward(self, x):
        Box.inner.manual_seed(0)
        Box.inner.utils.data
        return torch.clamp(x, min=0)
