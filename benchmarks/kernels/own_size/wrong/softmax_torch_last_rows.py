# problem: own_size/problems/softmax.py
# implementation: torch
# mechanism: rows from 1024 on are not divided by their sum
# origin: right at every size below the problem's own

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.softmax(x, dim=-1)
        y[1024:] = torch.exp(x[1024:] - x[1024:].amax(dim=-1, keepdim=True))
        return y
