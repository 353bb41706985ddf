# problem: modules/problems/interval_of.py
# implementation: torch
# mechanism: counts the edges below

import torch


class ModelNew(torch.nn.Module):
    def forward(self, edges, x):
        return (edges < x.unsqueeze(-1)).sum(-1)
