# problem: modules/problems/cholesky_logdet.py
# implementation: torch
# mechanism: by an LU decomposition

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a):
        return torch.linalg.slogdet(a).logabsdet
