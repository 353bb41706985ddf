# problem: own_size/problems/matmul.py
# implementation: torch
# mechanism: the product

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)
