# problem: modules/problems/scattered_sum.py
# implementation: torch
# mechanism: the rows of each place are picked and summed

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, place):
        parts = [x[place == i].sum(0) for i in range(10)]
        return torch.stack(parts)
