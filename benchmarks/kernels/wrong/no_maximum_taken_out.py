# problem: softmax
# implementation: torch
# mechanism: the exponential of large values overflows
# origin: mechanism: softmax without its shift; inputs of torch.rand never show it

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        weights = torch.exp(x)
        return weights / weights.sum(dim=-1, keepdim=True)
