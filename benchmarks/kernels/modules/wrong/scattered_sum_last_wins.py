# problem: modules/problems/scattered_sum.py
# implementation: torch
# mechanism: writes instead of adding
# origin: mechanism: writes instead of adding

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, place):
        out = torch.zeros(10, x.shape[1], dtype=x.dtype)
        out[place] = x
        return out
