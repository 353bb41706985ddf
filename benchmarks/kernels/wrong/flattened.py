# problem: conv2d
# implementation: torch
# mechanism: the values are right and the shape is gone
# origin: mindspore-ai/akg's comparison flattened both sides and accepted it

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        return torch.nn.functional.conv2d(x, weight, stride=2, padding=1).flatten()
