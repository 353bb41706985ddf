# problem: modules/problems/triangular_matmul.py
# implementation: torch
# mechanism: leaves the diagonal out of the triangle
# origin: mechanism: leaves the diagonal out of the triangle

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.tril(a @ b, diagonal=-1) + torch.diag(a.diagonal() * b.diagonal().abs())
