# problem: modules/problems/clipped_ratio.py
# implementation: torch
# mechanism: clips at the width of the example
# origin: mechanism: clips at the width of the example

import torch


class ModelNew(torch.nn.Module):
    def forward(self, ratio, gain, epsilon):
        clipped = ratio.clamp(0.8, 1.2)
        return -torch.minimum(ratio * gain, clipped * gain).mean()
