# problem: modules/problems/rotary.py
# implementation: torch
# mechanism: a product of complex numbers

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, base):
        n, d = x.shape[-2:]
        rate = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        angle = torch.arange(n, dtype=torch.float64).unsqueeze(1) * rate
        turn = torch.polar(torch.ones_like(angle), angle).to(torch.complex64)
        a, b = x.contiguous().chunk(2, dim=-1)
        z = torch.complex(a.contiguous(), b.contiguous()) * turn
        return torch.cat([z.real, z.imag], dim=-1)
