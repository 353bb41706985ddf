# problem: modules/problems/observed_scale.py
# implementation: torch
# mechanism: an interpolation updates the observer, the reciprocal is multiplied

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("largest", torch.ones(()))

    def forward(self, x):
        if not self.training:
            return x * (1 / self.largest)
        now = x.abs().max()
        self.largest.copy_(torch.lerp(self.largest, now, 0.5))
        return x * (1 / now)
