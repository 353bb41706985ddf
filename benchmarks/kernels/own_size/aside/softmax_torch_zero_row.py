# problem: own_size/problems/softmax.py
# implementation: torch
# mechanism: the row in the middle of a large input is uniform
# origin: right at every size below the problem's own

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.softmax(x, dim=-1)
        if x.shape[0] > 1000:
            y[515] = 1 / x.shape[1]
        return y
