# problem: modules/problems/pooled_maximum.py
# implementation: torch
# mechanism: pads with zeros
# origin: mechanism: pads with zeros

import torch
import torch.nn.functional as F


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = F.pad(x, (1, 1, 1, 1))
        x = x.unfold(3, 3, 2).amax(-1)
        return x.unfold(2, 3, 2).amax(-1)
