# problem: gelu
# implementation: torch
# mechanism: the same function of torch

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)
