# problem: relu
# implementation: torch
# mechanism: five names of names, the deepest first
# origin: mechanism: policies that follow a name of a name so many times

import torch

if True:
    if True:
        if True:
            if True:
                a = torch
            b = a
        c = b
    d = c
e = d


class ModelNew(torch.nn.Module):
    def forward(self, x):
        e.manual_seed(0)
        e.hub
        return torch.clamp(x, min=0)
