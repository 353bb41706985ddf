# problem: modules/problems/third_smallest.py
# implementation: torch
# mechanism: the last of the three smallest

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.topk(3, dim=-1, largest=False).values[:, 2].contiguous()
