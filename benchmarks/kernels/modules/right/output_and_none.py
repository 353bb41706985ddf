# problem: modules/problems/output_and_none.py
# implementation: torch
# mechanism: both matrices multiplied first

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = torch.nn.Linear(width, width, bias=False)
        self.output = torch.nn.Linear(width, width, bias=False)

    def forward(self, x):
        return x @ (self.output.weight @ self.query.weight).t(), None
