# problem: index_add
# implementation: torch
# mechanism: a gathered addition: of several rows for one place only the last one counts
# origin: mechanism: scatter without atomics

import torch


class ModelNew(torch.nn.Module):
    def forward(self, base, index, rows):
        out = base.clone()
        out[index] += rows
        return out
