# problem: modules/problems/exact_gelu.py
# implementation: torch
# mechanism: the complementary error function, exact in the tail

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return 0.5 * x * torch.special.erfc(x * -0.7071067811865476)
