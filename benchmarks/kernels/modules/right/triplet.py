# problem: modules/problems/triplet.py
# implementation: torch
# mechanism: two distances written out

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, near, far):
        first = (anchor - near + 1e-6).square().sum(-1).sqrt()
        second = (anchor - far + 1e-6).square().sum(-1).sqrt()
        return torch.relu(first - second + self.margin).mean()
