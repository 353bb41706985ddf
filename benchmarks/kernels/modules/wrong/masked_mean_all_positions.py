# problem: modules/problems/masked_mean.py
# implementation: torch
# mechanism: divides by the length of the row
# origin: mechanism: divides by the length of the row

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, counts):
        return (x * counts.unsqueeze(-1)).mean(1)
