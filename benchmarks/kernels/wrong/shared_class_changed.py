# problem: relu
# implementation: torch
# mechanism: a function is handed the class of tensors and changes it; the changed input is not seen
# origin: mechanism: policies that look at the name that is assigned to

import torch


def patch(c):
    c.gadget = 5


class ModelNew(torch.nn.Module):
    def forward(self, x):
        patch(torch.Tensor)
        return torch.clamp(x, min=0)
