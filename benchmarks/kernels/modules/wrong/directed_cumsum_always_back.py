# problem: modules/problems/directed_cumsum.py
# implementation: torch
# mechanism: runs from the end whatever the flag says
# origin: mechanism: runs from the end whatever the flag says

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, backwards):
        return torch.flip(torch.cumsum(torch.flip(x, [-1]), -1), [-1])
