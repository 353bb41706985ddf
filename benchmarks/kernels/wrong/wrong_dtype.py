# problem: argmax
# implementation: torch
# mechanism: the indices come back in 32 bits
# origin: mechanism: dtype of the answer

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.argmax(dim=-1).to(torch.int32)
