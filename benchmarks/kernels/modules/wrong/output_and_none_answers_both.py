# problem: modules/problems/output_and_none.py
# implementation: torch
# mechanism: gives a tensor where None is asked for
# origin: mechanism: gives a tensor where None is asked for

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = torch.nn.Linear(width, width, bias=False)
        self.output = torch.nn.Linear(width, width, bias=False)

    def forward(self, x):
        y = self.query(x)
        return self.output(y), y
