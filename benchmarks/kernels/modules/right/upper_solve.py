# problem: modules/problems/upper_solve.py
# implementation: torch
# mechanism: back substitution, row by row from the last

import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        n = a.shape[0]
        rows = [None] * n
        for i in reversed(range(n)):
            rest = b[i]
            if i + 1 < n:
                rest = rest - a[i, i + 1 :] @ torch.stack(rows[i + 1 :])
            rows[i] = rest / a[i, i]
        return torch.stack(rows)
