# problem: modules/problems/interval_of.py
# implementation: torch
# mechanism: counts edges that are equal, too
# origin: mechanism: counts edges that are equal, too

import torch


class ModelNew(torch.nn.Module):
    def forward(self, edges, x):
        return (edges <= x.unsqueeze(-1)).sum(-1)
