# problem: modules/problems/exact_gelu.py
# implementation: torch
# mechanism: the tanh approximation for the exact function
# origin: mechanism: the tanh approximation for the exact function

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + torch.tanh(inner))
