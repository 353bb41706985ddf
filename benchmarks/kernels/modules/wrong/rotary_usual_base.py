# problem: modules/problems/rotary.py
# implementation: torch
# mechanism: the base of the example as a constant
# origin: mechanism: the base of the example as a constant

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, base):
        n, d = x.shape[-2:]
        rate = 100.0 ** (-torch.arange(0, d, 2).to(x.dtype) / d)
        angle = torch.arange(n).to(x.dtype).unsqueeze(1) * rate
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)
