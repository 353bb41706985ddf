# problem: modules/problems/scaled_residual.py
# implementation: torch
# mechanism: one addition with a factor

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y, strength):
        return torch.add(x, y.tanh(), alpha=strength)
